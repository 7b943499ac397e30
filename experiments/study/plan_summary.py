"""What `--plan` prints: what each stage of a study takes, and all of it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax.runs.memory import GIB
from experiments.common import cli
from experiments.study.costs import Cost, Costs
from experiments.study.plan import EVALUATION, StudyJob, StudySettings, at_chunk_end, reached

PRETRAIN = "experiments.minigrid_pretrain"
SPEED_CHUNKS = 10  # of a run that measures speed


def show(
    root: Path, study: StudySettings, jobs: Sequence[StudyJob], console: Console, verbose: bool
) -> None:
    """Print the plan: what each stage takes, and what all of it does; every job, if asked for.

    Args:
        root: the study's directory.
        study: its settings.
        jobs: of the study.
        console: where to.
        verbose: whether to print every job.
    """
    for job in jobs if verbose else ():
        begun = reached(job.root)
        state = "done" if job.done else f"at {begun:,}" if begun else "to do"
        console.print(f"{state:>12}  {job}", soft_wrap=True, highlight=False)
    costs = Costs(root)
    stages = dict.fromkeys(job.stage for job in jobs)
    left = {stage: costs.left([job for job in jobs if job.stage == stage]) for stage in stages}
    console.print(_summary(jobs, left))
    total, to_go = sum(job.new_frames for job in jobs), sum(cost.frames for cost in left.values())
    console.print(f"{total:,} frames in all, {to_go:,} to go", highlight=False)
    size = costs.bytes(jobs)
    if size is None:
        short = str(SPEED_CHUNKS * at_chunk_end(jobs[0].settings, 1))
        words = ("--preset", study.preset, "--network.factors", study.factors)
        out = root.parent / f"speed-{study.preset}"
        command = cli.command_line(PRETRAIN, *words, "--frames", short, "--out", out)
        line = f"no run of this size was measured here, so hours are not known; measure: {command}"
        console.print(line, soft_wrap=True, highlight=False)
        return
    for line in _time_and_disk(size, list(left.values()), costs):
        console.print(line, soft_wrap=True, highlight=False)


def _summary(jobs: Sequence[StudyJob], left: Mapping[str, Cost]) -> Table:
    """Return a table with a row for each stage."""
    table = Table(box=box.SIMPLE)
    for title in ("stage", "runs", "seeds", "frames each", "left", "frames to go", "hours"):
        table.add_column(title, justify="left" if title == "stage" else "right", no_wrap=True)
    for stage, cost in left.items():
        own = [job for job in jobs if job.stage == stage]
        frames = sorted({job.now for job in own})
        each = " to ".join(f"{at:,}" for at in dict.fromkeys((frames[0], frames[-1])))
        to_go = f"{cost.frames:,}" if stage != EVALUATION else ""
        seeds = own[0].settings.seeds
        row = (stage, len(own), seeds, each, cost.jobs, to_go, _hours(cost.seconds))
        table.add_row(*map(str, row))
    return table


def _hours(seconds: float | None) -> str:
    return "?" if seconds is None else f"{seconds / 3600:.1f}"


def _time_and_disk(size: float, left: Sequence[Cost], costs: Costs) -> Iterator[str]:
    """Yield how long the rest takes on this machine, on how much disk, and how that is known."""
    known = [cost.seconds for cost in left if cost.seconds is not None]
    partly = "" if len(known) == len(left) else ", and what is not measured"
    yield f"about {sum(known) / 3600:.1f} hours{partly}; {size / GIB:.1f} GiB on disk in the end"
    for method, speed in costs.used.items():
        yield f"{method}: {speed.frames_per_second:,.0f} frames/s in {speed.run} ({speed.at})"
    if costs.unmeasured:
        names = ", ".join(sorted(costs.unmeasured))
        yield f"not measured here, so as the slowest measured method of their kind: {names}"
