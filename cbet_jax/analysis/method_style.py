"""Titles and colours of methods, the same in all pictures and reports."""

from collections.abc import Iterable

# Name -> title, colour. The paper's methods have Okabe and Ito's colours, which people with any
# colour vision tell apart.
BASES = {
    "cbet": ("C-BET", "#0072B2"),
    "count": ("Count", "#D55E00"),
    "ride": ("RIDE", "#009E73"),
    "curiosity": ("Curiosity", "#CC79A7"),
    "rnd": ("RND", "#E69F00"),
    "noveld": ("NovelD", "#44AA99"),
    "e3b": ("E3B", "#AA4499"),
    "ngu-episodic": ("NGU's episodic bonus", "#661100"),
    "re3": ("RE3", "#DDCC77"),
    "none": ("no intrinsic reward", "#000000"),
    "transfer": ("transfer", "#000000"),
    "untrained": ("untrained network", "#7F7F7F"),
    "frozen": ("frozen policy", "#BCBD22"),
    "uniform": ("uniformly random", "#BFBFBF"),
    "states-squared": ("1 / N(s')", "#8C564B"),
    "changes": ("changes only", "#56B4E9"),
    "product": ("product", "#882255"),
    "sum-squared": ("squared sum", "#332288"),
    "sum-inside": ("sum inside", "#999933"),
    "sum": ("sum", "#117733"),
    "all worlds": ("all worlds", "#0072B2"),
}
OTHERS = ("#882255", "#117733", "#56B4E9", "#999933", "#8C564B", "#332288", "#44AA99", "#000000")
PALER = 0.45  # share by which each of a name's first two words moves its colour to white


def plain_name(name: str) -> str:
    """Return a method's or world's name.

    For own code, `my.py:make@1a2b3c4d`, it is `my`; `my-other` for another function. It can name a
    file: `Unlock-in-50` for `Unlock?max_steps=50`.
    """
    place, colon, function = name.replace("?max_steps=", "-in-").partition(":")
    if not colon:
        return place
    function = function.partition("@")[0]
    return place.removesuffix(".py") + f"-{function}" * (function != "make")


def title(name: str) -> str:
    """Return a method's title: "C-BET no resets" for `cbet-no-resets`."""
    name = plain_name(name)
    base, words = _split(name)
    return " ".join([BASES[base][0], *words]) if base else name


def colors(names: Iterable[str]) -> dict[str, str]:
    """Return the colour of each name: a method's own, paler for its variants.

    Other names, and variants whose colour is taken, get one of `OTHERS`.
    """
    found: dict[str, str] = {}
    for name in dict.fromkeys(names):
        base, words = _split(name)
        own = _paler(BASES[base][1], len(words)) if base else ""
        taken, other = ("", *found.values()), OTHERS[len(found) % len(OTHERS)]
        found[name] = next((c for c in (own, *OTHERS) if c not in taken), other)
    return found


def _split(name: str) -> tuple[str, list[str]]:
    """Return the method that a name begins with, if any, and the words that follow it."""
    plain = name.lower().removeprefix("ablation-")
    for base in BASES:
        if plain == base:
            return base, []
        if plain.startswith((f"{base}-", f"{base} ")):
            return base, plain[len(base) + 1 :].replace("-", " ").split()
    return "", []


def _paler(color: str, steps: int) -> str:
    channels = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
    for _ in range(min(steps, 2)):
        channels = [round(x + PALER * (255 - x)) for x in channels]
    return "#" + "".join(f"{x:02X}" for x in channels)
