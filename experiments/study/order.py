"""What drives the order of the two methods that count: C-BET and Count in each case."""

from typing import NamedTuple

from envs.minigrid.generators.catalogue import TRANSFER as TEN_WORLDS
from experiments.study.estimates import Findings, Measured

ORDER = {  # what differs -> C-BET's variant, Count's
    "": ("cbet", "count"),
    "both reset": ("cbet", "count-resets"),
    "neither reset": ("cbet-no-resets", "count"),
    "shared counts": ("cbet-shared", "count-shared"),
    "16 actors": ("cbet-16-actors", "count-16-actors"),
}
NEAR = 1.1  # times as many frames are about as many: chunks end elsewhere


class Case(NamedTuple):
    """One case, after about so many frames of pre-training."""

    title: str
    setup: str
    methods: tuple[str, str]  # C-BET's variant, Count's
    frames: int

    def at(self, found: Findings) -> list[int | None]:
        """Return the frames after which C-BET and Count were evaluated, None where not."""
        nearest = [found.nearest(self.setup, method, self.frames) for method in self.methods]
        low, high = self.frames / NEAR, self.frames * NEAR
        return [at if at and low <= at <= high else None for at in nearest]

    def measure(self, found: Findings, metric: str) -> list[Measured | None]:
        """Return the means of the ten worlds: C-BET's, Count's; None where it was not run."""
        return [
            found.measure((self.setup,), method, metric, TEN_WORLDS, at) if at else None
            for method, at in zip(self.methods, self.at(found), strict=True)
        ]


def cases(found: Findings) -> list[Case]:
    """Return the cases: in each setup after equal frames, then the last frames of each."""
    last = [
        Case(", ".join(filter(None, (setup, title))), setup, methods, frames)
        for setup in found.setups()
        for title, methods in ORDER.items()
        if (frames := _until(found, setup, methods))
    ]
    ran = {case.setup for case in last}
    equal = {setup: min(case.frames for case in last if case.setup == setup) for setup in ran}
    later = [
        case._replace(title=f"{case.title}, later")
        for case in last
        if case.frames > NEAR * equal[case.setup]
    ]
    return [case._replace(frames=equal[case.setup]) for case in last] + later


def _until(found: Findings, setup: str, methods: tuple[str, str]) -> int:
    """Return the last frames after which both were evaluated (0: this is not a separate case).

    Where only one of them was evaluated, they are its last ones.
    """
    plain = ORDER[""]
    own = [method for method in methods if methods == plain or method not in plain]
    if not any(found.evaluated_at(setup, method) for method in own):
        return 0
    first, second = (found.evaluated_at(setup, method) for method in methods)
    if not first or not second:
        return max((*first, *second))
    common = [min(a, b) for a in first for b in second if max(a, b) <= NEAR * min(a, b)]
    return max(common, default=0)
