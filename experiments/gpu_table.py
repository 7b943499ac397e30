"""The report on a GPU as a table in Markdown."""

from collections.abc import Iterable, Sequence
from typing import Any

HEADER = (
    *("case", "frames/s", "ms a call", "minutes to the end", "TFLOP/s", "of a product"),
    *("memory, MiB", "compiling, s"),
)
NOTES = (
    "A call is one iteration of all seeds: rollouts and updates (training), or one of the two "
    "alone. Minutes to the end: of all seeds together, at the preset's number of frames. "
    "Operations are those of the policy's network alone, their rate beside that of a product of "
    "two large square matrices with the same factors. Memory is what the program plans to hold "
    "at once. Programs of a group were compiled at the same time, so that each alone takes less."
)


def markdown(content: dict[str, Any]) -> str:
    """Returns the report as text.

    Args:
        content: of the report, which may not be complete.
    """
    machine = content["machine"]
    where = "" if content["is_gpu"] else " (no GPU that JAX can use: these are another's numbers)"
    lines = [
        f"# Training on {content['device']}{where}",
        "",
        f"{machine['started']}, jax {machine['packages']['jax']}, commit {machine['commit']}; "
        f"{content['seconds']:.0f} s{'' if content['finished'] else ', not finished'}.",
        "",
    ]
    lines += [f"- {line}" for line in _facts(content)]
    lines += ["", *table(HEADER, (_row(case, content) for case in content["cases"])), "", NOTES]
    for case in content["cases"]:
        if "profile" in case:
            lines += ["", f"## Kernels: {case['case']}", "", *_kernels(case["profile"])]
    return "\n".join(lines) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Returns the lines of a table whose first column is text, the others numbers."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]


def _facts(content: dict[str, Any]) -> Iterable[str]:
    if "agreement" in content:
        found = content["agreement"]
        if "error" in found:
            yield f"not compared with the CPU: {found['error']}"
        else:
            same = ", ".join(found["different"]) or "none differs"
            whom = "the CPU" if content["is_gpu"] else "itself, no other device being there,"
            yield (
                f"{'agrees' if found['agrees'] else 'DOES NOT AGREE'} with {whom} after one "
                f"iteration in float32: of {found['integers']:,} integers (worlds, counts, keys) "
                f"{same}; relative differences: update of the parameters {found['update']:.1e}, "
                f"metrics {found['metrics']:.1e}, other numbers {found['floats']:.1e}"
            )
    for name, rate in content.get("rates", {}).items():
        yield f"{name}: {rate:,.4g} {'Gbyte/s' if name == 'copying' else 'TFLOP/s'}"
    calls = sorted({call for case in content["cases"] for call in case.get("host_calls", ())})
    if content["cases"]:
        yield f"programs ask the host for: {', '.join(calls) or 'nothing'}"
    if content["compiled_programs_kept_in"]:
        yield "compiled programs may have been read from JAX_COMPILATION_CACHE_DIR"


def _row(case: dict[str, Any], content: dict[str, Any]) -> list[str]:
    if "error" in case:
        return [case["case"], case["error"], *[""] * (len(HEADER) - 2)]
    product = content["rates"][f"product, {case['factors']}"]
    return [
        case["case"],
        f"{case['frames_per_second']:,.0f}",
        f"{case['milliseconds']:,.1f}",
        f"{case['minutes']:,.1f}" if "minutes" in case else "",
        f"{case['tflops']:.3g}",
        f"{100 * case['tflops'] / product:.1f} %",
        f"{case['planned_bytes'] / 2**20:,.0f}",
        f"{case['compile_seconds']:.0f}",
    ]


def _kernels(profile: dict[str, Any]) -> list[str]:
    if "error" in profile:
        return [f"not profiled: {profile['error']}"]
    counted = (
        f"{profile['kernels_per_step']:.1f} kernels for each of {profile['steps']} steps, "
        f"{profile['in_every_step']} of them in every step; "
        f"{profile['kernel_milliseconds']:,.1f} ms in kernels; "
        f"copies to the host: {profile['copies_to_host']}, from it: {profile['copies_from_host']}. "
        "The largest:"
    )
    header = ("kernel", "from", "a step", "us each", "of the time")
    rows = (
        [
            f"`{kernel['name']}`",
            f"`{kernel['from']}`" if kernel["from"] else "",
            f"{kernel['per_step']:.2f}",
            f"{kernel['microseconds']:.1f}",
            f"{100 * kernel['share']:.1f} %",
        ]
        for kernel in profile["largest"]
    )
    return [counted, "", *table(header, rows)]
