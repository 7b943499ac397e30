"""The report on a GPU as a table in Markdown."""

from collections.abc import Iterable
from typing import Any

from experiments.benchmarks.gpu_program_table import part_lines, table

HEADER = (
    *("case", "frames/s", "ms a call", "minutes to the end", "TFLOP/s", "of a product"),
    *("memory, MiB", "callbacks", "open loops", "conditionals", "compiling, s"),
)
NOTES = (
    "A call is one iteration of all seeds: rollouts and updates (training), or only one of the "
    "two. Minutes to the end: of all seeds together, at the preset's number of frames. "
    "Operations are those of the policy's network only, their rate beside that of a product of "
    "two large square matrices with the same factors. Memory is the most that the program plans "
    "to hold at once. Callbacks ask the host for something within the program. Open loops, whose "
    "length depends on numbers, and conditionals ask for nothing, but the host of a GPU may wait "
    "there to read which way to go. Programs of a group were compiled at the same time; by itself "
    "each takes less."
)
APART = {"update": "update of the parameters", "metrics": "metrics", "floats": "other numbers"}


def markdown(content: dict[str, Any]) -> str:
    """Return the report as text.

    Args:
        content: of the report; it may be incomplete.
    """
    machine = content["machine"]
    where = "" if content["is_gpu"] else " (JAX finds no GPU: these are another device's numbers)"
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
        if "parts" in case.get("program", {}):
            lines += ["", f"## Compiled program: {case['case']}", ""]
            lines += part_lines(case["program"])
    return "\n".join(lines) + "\n"


def _facts(content: dict[str, Any]) -> Iterable[str]:
    for name, found in content["agreement"].items():
        yield _agreement(name, found, "the CPU" if content["is_gpu"] else "itself, the only device")
    for name, rate in content.get("rates", {}).items():
        yield f"{name}: {rate:,.4g} {'Gbyte/s' if name == 'copying' else 'TFLOP/s'}"
    calls = sorted({call for case in content["cases"] for call in case.get("host_calls", ())})
    if calls:
        yield f"callbacks: {', '.join(calls)}"
    if content["compiled_programs_kept_in"]:
        yield "compiled programs may have been read from JAX_COMPILATION_CACHE_DIR"


def _agreement(name: str, found: dict[str, Any], whom: str) -> str:
    if "error" in found:
        return f"{name}: NOT COMPARED with {whom}: {found['error']}"
    same = ", ".join(found["different"]) or "none differs"
    apart = (
        f"{what} {found[key]:.1e} (at most {found['bounds'][key]:.0e})"
        for key, what in APART.items()
    )
    return (
        f"{name}: {'agrees' if found['agrees'] else 'DOES NOT AGREE'} with {whom}; of "
        f"{found['integers']:,} integers {same}; relative differences: {', '.join(apart)}"
    )


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
        str(len(case["host_calls"])),
        str(case["open_loops"]),
        str(case["conditionals"]),
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
