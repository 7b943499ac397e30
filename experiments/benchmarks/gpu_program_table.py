"""What a compiled GPU program holds, as a table in Markdown."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

MEGA, GIGA = 1e6, 1e9
HEADER = (
    *("part", "turns", "launches", "chain", "read, MB", "written, MB", "turned, MB"),
    *("products", "GFLOP", "host waits", "ms"),
)
NOTES = (
    "Turns are of an iteration of all seeds; a loop whose length depends on numbers counts as one "
    "turn. All other columns but the last are of one turn. Chain: launches of which each waits "
    "for the one before, at most. Turned: bytes of launches that only turn, copy, round or fill "
    "arrays. Host waits: places where the host may wait for the device, at least once each. ms: "
    "of an iteration, as the rates say."
)


def markdown(content: dict[str, Any]) -> str:
    """Return what `make` has found as text. Its first line says that nothing was run."""
    name = content["case"].removesuffix(", training")
    low, high = content["minutes"]
    lines = [
        f"# Nothing was run: the program of {name}, as compiled for a GPU",
        "",
        *(f"- {fact}" for fact in _facts(content)),
        f"- estimate: {content['seeds']} x {content['frames'] / MEGA:g} million frames in "
        f"{low:.1f} to {high:.1f} minutes",
        "",
        *part_lines(content),
    ]
    return "\n".join(lines) + "\n"


def part_lines(content: dict[str, Any]) -> list[str]:
    """Return the table of a program's parts, notes, and the lines of source that cost most."""
    lines = [*table(HEADER, map(_row, content["parts"])), "", NOTES, ""]
    costly = ((part["name"], *line) for part in content["parts"] for line in part["costly"])
    header = ("part", "launches", "MB", "line of source")
    rows = ([name, f"{n:.4g}", f"{moved / MEGA:,.1f}", f"`{at}`"] for name, at, n, moved in costly)
    return [*lines, "The lines that cost most, in one turn:", "", *table(header, rows)]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table with text in the first column and numbers in the others."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


def _facts(content: dict[str, Any]) -> Iterator[str]:
    rates = content["rates"]
    if content["memory"]:
        sizes = " + ".join(f"{size / MEGA:,.0f} MB {n}" for n, size in content["memory"].items())
        yield f"memory: {sizes}; compiled in {content['compile_seconds']:.0f} s"
    low, high = (1e6 * seconds for seconds in rates["launch"])
    memory, products = ([each / 1e12 for each in rates[n]] for n in ("memory", "products"))
    yield (
        f"rates: a launch {low:g} to {high:g} us at least, memory {memory[0]:.1f} to "
        f"{memory[1]:.1f} TB/s, bfloat16 products {products[0]:.0f} to {products[1]:.0f} TFLOP/s"
    )
    if content["host_calls"]:
        yield f"callbacks: {', '.join(content['host_calls'])}"
    for place in content["open_places"]:
        yield f"the host may wait at `{place}`"


def _row(part: dict[str, Any]) -> list[str]:
    turn, seconds = part["turn"], part["seconds"]
    low, high = 1e3 * seconds["low"], 1e3 * seconds["high"]
    return [
        part["name"],
        str(part["turns"]),
        f"{turn['launches']:.4g}",
        f"{turn['chain']:.4g}",
        *(f"{turn[name] / MEGA:,.1f}" for name in ("read", "written", "turned")),
        f"{turn['products']:.3g}",
        f"{turn['operations'] / GIGA:,.1f}",
        f"{turn['waits']:.2g}",
        f"{low:,.1f} to {high:,.1f}",
    ]
