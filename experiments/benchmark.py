"""Measure the worlds and the training on this machine: `python -m experiments.benchmark`.

It runs on the devices that JAX finds, and its table names them. Every ratio is the median over
pairs of short slices that were measured in turn, with its spread (10th to 90th percentile over the
median). A ratio of fewer than three pairs, or of a spread over 25 %, is not printed.
"""

import platform
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax.config import SettingsError
from cbet_jax.runs import manifest
from cbet_jax.runs.atomic_write import check_room, write_json
from cbet_jax.settings.ranges import check_between
from envs.errors import UnknownEnvironment
from experiments.benchmarks.measurement import GROUPS, BenchmarkOptions, Measurement
from experiments.common import cli, presets
from experiments.common.screen import Screen, say

MODULE = "experiments.benchmark"
MOST_ROUNDS, MOST_WORLDS = 1000, 2**20
CAPTION = (
    "cbet-jax: with view, panorama, hashes, both counts, reward, resets and fresh levels; the "
    "paper's three worlds mixed, unless one is named. minigrid: the same, one process, views "
    "only. navix: its own KeyCorridorS3R3 with automatic resets, no occlusion, panorama or "
    "counts. gym_vector: with numpy out, resets, success and unique interactions. envpool: its "
    "own MiniGrid in C++, if installed, with a thread for each core."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line asks for, print a table and write it as JSON."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Screen()
    with cli.user_errors(UnknownEnvironment):
        options: BenchmarkOptions = cli.parse(BenchmarkOptions, arguments, MODULE)
        path = check(options)
        rows: list[Measurement] = []
        from cbet_jax.runs.devices import use_cpu  # imported here: it takes seconds

        use_cpu()
        measure = measured()
        for number, group in enumerate(options.groups):
            with console.status(f"measuring {group}"):
                rows += measure[group](options)
            write(path, rows, arguments, again=number > 0)  # a stop keeps what was measured
    show(console, rows)
    say(console, f"saved: {path}")


def measured() -> dict[str, Callable[[BenchmarkOptions], list[Measurement]]]:
    """Return what measures each group."""
    # Imported here: they take seconds.
    from experiments.benchmarks.gymnasium_measurements import measure_gymnasium as gymnasium
    from experiments.benchmarks.training_measurements import measure_training as training
    from experiments.benchmarks.world_measurements import measure_environments, measure_worlds

    worlds = {"worlds": measure_worlds, "environments": measure_environments}
    return {**worlds, "gymnasium": gymnasium, "training": training}


def check(options: BenchmarkOptions) -> Path:
    """Return the file to write.

    Raises:
        UnknownEnvironment: no environment has that name.
        SettingsError: a group or preset is unknown, a number is out of range, or the file exists.
    """
    from envs.minigrid.generators import find

    for group in options.groups:
        if group not in GROUPS:
            raise SettingsError(f"unknown group {group!r}; there are {', '.join(GROUPS)}")
    if {*options.groups} - {"training"} and find_spec("minigrid") is None:
        raise SettingsError("all groups but `training` need minigrid, of the extra `dev`")
    for name in options.presets:
        presets.named(name)
    for name in options.envs:
        find(name)
    check_between("rounds", options.rounds, 1, MOST_ROUNDS)
    for name, numbers in {"worlds": options.worlds, "seeds": options.seeds}.items():
        for number in numbers:
            check_between(name, number, 1, MOST_WORLDS)
    path = options.out or Path("runs") / f"benchmark-{datetime.now():%Y%m%d-%H%M%S}.json"
    if path.exists():
        raise SettingsError(f"{path} exists already: choose another file")
    check_room(path.parent)
    return path


def write(
    path: Path, rows: Sequence[Measurement], arguments: Sequence[str], *, again: bool
) -> None:
    """Write the rows and what they were measured on; only `again` replaces the file."""
    of_rows = [
        {**row._asdict(), "ratios": {peer: r._asdict() for peer, r in row.ratios.items()}}
        for row in rows
    ]
    content = {
        "measured_on": machine(),
        "machine": manifest.describe(tuple(arguments)),
        "rows": of_rows,
    }
    write_json(path, content, again=again)


def machine() -> str:
    """Return the devices, the cores and the version of JAX that this process uses."""
    import jax

    from cbet_jax.sharding import cores

    devices = jax.devices()
    kind = devices[0].device_kind
    if kind == "cpu":
        kind = f"CPU ({_cpu_model()})"
    return f"{len(devices)} x {kind}, {cores()} CPU cores, jax {jax.__version__}"


def _cpu_model() -> str:
    """Return the name of this machine's processor, or its architecture where Linux names none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def decimals(value: float) -> str:
    """Return a number as the table shows it."""
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.2g}"


def show(console: Console, rows: Sequence[Measurement]) -> None:
    """Print the rows."""
    table = Table(
        title=f"Measured on {machine()}",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        caption=CAPTION,
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("measured")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("times as much as")
    for row in rows:
        ratios = ", ".join(f"{ratio} x {peer}" for peer, ratio in row.ratios.items())
        table.add_row(row.what, decimals(row.value), row.unit, ratios)
    console.print(table)


if __name__ == "__main__":
    main()
