"""Measures the worlds and the training: `python -m experiments.benchmark`.

Every ratio compares speeds measured in turn within this one run. Nothing is judged here:
the table says what was measured.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax import manifest
from cbet_jax.config import CountSettings, SettingsError, TrainSettings
from cbet_jax.intrinsic.cbet import cbet
from cbet_jax.intrinsic.types import Params
from cbet_jax.train import make_program, seed_keys
from cbet_jax.types import LSTMState, Trajectory
from envs.minigrid import make_world
from envs.types import World
from experiments import cli, measure
from experiments.measure import Task, speeds
from experiments.presets import PRESETS

PROGRAM = "python -m experiments.benchmark"
ENVIRONMENTS = PRESETS["paper"].environments
MINIGRID_IDS = (
    "MiniGrid-MultiRoom-N4-S5-v1",
    "MiniGrid-KeyCorridorS3R3-v0",
    "MiniGrid-BlockedUnlockPickup-v0",
)
NAVIX_ID = "Navix-KeyCorridorS3R3-v0"
STEPS = 100  # in each call of a compiled loop
CAPTION = (
    "cbet-jax: the paper's three worlds mixed, with view, panorama, hashes, both counts, reward "
    "and resets. minigrid: the same three, one process, views alone. navix: its own "
    "KeyCorridorS3R3 with automatic resets, no occlusion, panorama or counts."
)


@dataclass(frozen=True)
class Options:
    """Measures worlds, count tables, training and compilation on this machine."""

    groups: tuple[str, ...] = ("worlds", "counts", "training", "compilation")
    rounds: int = 5  # of each measurement; the median counts
    worlds: tuple[int, ...] = (64, 256, 1024)  # side by side
    capacities: tuple[int, ...] = (2**12, 2**14, 2**16, 2**18)  # slots of a count table
    presets: tuple[str, ...] = ("paper", "laptop")  # whose training is measured
    out: Path | None = None  # JSON file (default: a new one in runs/)


class Row(NamedTuple):
    """One measured number, and how many times another one it is."""

    what: str
    value: float
    unit: str
    ratios: dict[str, float]  # to what -> ratio


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures what the command line asks for, prints a table and writes it as JSON."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Console()
    with cli.user_errors():
        options: Options = cli.parse(Options, arguments, prog=PROGRAM)
        path = check(options)
        rows: list[Row] = []
        for group in options.groups:
            with console.status(f"measuring {group}"):
                rows += GROUPS[group](options)
        write(path, rows, arguments)
    show(console, rows)
    console.print(f"saved: {path}", soft_wrap=True, highlight=False)


def check(options: Options) -> Path:
    """Returns the file to write.

    Raises:
        SettingsError: an unknown group or preset, a number out of range, a file that exists.
    """
    for group in options.groups:
        if group not in GROUPS:
            raise SettingsError(f"unknown group {group!r}; there are {', '.join(GROUPS)}")
    for name in options.presets:
        cli.preset(name)
    for slots in options.capacities:
        CountSettings(capacity=slots)
    if min(options.rounds, len(options.capacities), *(options.worlds or (0,))) < 1:
        raise SettingsError("rounds, worlds and capacities must be at least 1, and not left out")
    path = options.out or Path("runs") / f"benchmark-{datetime.now():%Y%m%d-%H%M%S}.json"
    if path.exists():
        raise SettingsError(f"{path} exists already: choose another file")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def measure_worlds(options: Options) -> list[Row]:
    """Steps a second of the worlds, of MiniGrid and of navix."""
    ours = {f"cbet-jax, {number} worlds": number for number in options.worlds}
    navix = {f"navix, {number} worlds": number for number in options.worlds}
    tasks = {"minigrid": minigrid_steps()}
    tasks |= {name: counted_steps(number) for name, number in ours.items()}
    tasks |= {name: navix_steps(number) for name, number in navix.items()}
    found = speeds(tasks, options.rounds)
    peers = {
        "minigrid": found["minigrid"],
        "navix at its fastest": max(found[name] for name in navix),
    }
    return [
        Row(
            name,
            speed,
            "steps/s",
            {peer: speed / other for peer, other in peers.items() if name in ours},
        )
        for name, speed in found.items()
    ]


def counted_steps(num_worlds: int, capacity: int | None = None) -> Task:
    """Returns random play in the three worlds mixed, with all that C-BET's reward needs."""
    world = make_world(ENVIRONMENTS, num_worlds, explore=True)
    method = cbet(CountSettings(capacity=capacity))

    def start(key: PRNGKeyArray) -> tuple[Any, Any, PRNGKeyArray]:
        world_key, memory_key, key = jax.random.split(key, 3)
        state, step = world.init(world_key)
        return state, method.init(memory_key, step)[1], key

    @partial(jax.jit, donate_argnums=0)
    def play(carry: Any) -> tuple[Any, Float[Array, "T N"]]:
        state, memory, key = carry
        key, scan_key = jax.random.split(key)

        def step(carry: Any, key: PRNGKeyArray) -> tuple[Any, Any]:
            state, memory = carry
            action_key, observe_key = jax.random.split(key)
            action = jax.random.randint(action_key, (num_worlds,), 0, world.num_actions)
            state, seen = world.step(state, action)
            memory, signal = method.observe(memory, observe_key, seen)
            return (state, memory), signal

        carry = world.refresh(state), memory
        (state, memory), signal = jax.lax.scan(step, carry, jax.random.split(scan_key, STEPS))
        return (state, memory, key), method.reward(Params({}, {}), _with_signal(signal))

    run = measure.repeated(lambda state: play(state)[0], jax.jit(start)(jax.random.key(0)))
    return Task(run, STEPS * num_worlds, "step")


def _with_signal(signal: Any) -> Trajectory:
    nothing = jnp.zeros(())
    state = LSTMState(nothing, nothing)
    return Trajectory(*(nothing,) * 7, signal, state)


def minigrid_steps() -> Task:
    """Returns random play in Farama's minigrid: the three worlds in turn, in this process."""
    import minigrid  # noqa: F401  (registers its environments)

    steps, random = 1000, np.random.default_rng(0)
    environments = [gymnasium.make(name).unwrapped for name in MINIGRID_IDS]
    for environment in environments:
        environment.reset(seed=0)

    def run() -> None:
        for environment in environments:
            for action in random.integers(7, size=steps):
                _, _, terminated, truncated, _ = environment.step(action)
                if terminated or truncated:
                    environment.reset()

    return Task(run, steps * len(environments), "step")


def navix_steps(num_worlds: int) -> Task:
    """Returns random play in navix's own KeyCorridorS3R3, with its automatic resets."""
    import navix

    environment = navix.make(NAVIX_ID)

    @jax.jit
    def play(carry: Any) -> Any:
        timestep, key = carry
        key, scan_key = jax.random.split(key)

        def step(timestep: Any, key: PRNGKeyArray) -> tuple[Any, None]:
            action = jax.random.randint(key, (num_worlds,), 0, len(environment.action_set))
            return jax.vmap(environment.step)(timestep, action), None

        timestep, _ = jax.lax.scan(step, timestep, jax.random.split(scan_key, STEPS))
        return timestep, key

    keys = jax.random.split(jax.random.key(0), num_worlds)
    timestep = jax.jit(jax.vmap(environment.reset))(keys)
    start = play((timestep, jax.random.key(1)))  # from here on its fields keep their types
    return Task(measure.repeated(play, start), STEPS * num_worlds, "step")


def measure_counts(options: Options) -> list[Row]:
    """Steps a second for tables of several sizes: a reset must not depend on the size."""
    names = {f"count tables of {slots} slots": slots for slots in options.capacities}
    number = options.worlds[0]
    tasks = {name: counted_steps(number, slots) for name, slots in names.items()}
    found = speeds(tasks, options.rounds)
    smallest = next(iter(names))
    return [
        Row(f"{name}, {number} worlds", speed, "steps/s", {smallest: speed / found[smallest]})
        for name, speed in found.items()
    ]


def measure_training(options: Options) -> list[Row]:
    """Frames a second of training, and its floating-point rate beside a matrix product's."""
    matrix = "matrix product"
    tasks = {matrix: measure.matrix_product()}
    flops = {}
    for name in options.presets:
        settings = PRESETS[name].train
        world = make_world(ENVIRONMENTS, settings.worlds, explore=True)
        tasks[name] = training(settings, world)
        forward = measure.forward_flops(settings.network, world.view_shape, world.num_actions)
        flops[name] = 4 * forward
    found = speeds(tasks, options.rounds)
    shape = "x".join(map(str, measure.MATRIX_SHAPE))
    rows = [Row(f"{matrix}, {shape}, float32", found[matrix] / 1e9, "GFLOP/s", {})]
    for name in options.presets:
        rate = found[name] * flops[name]
        ratios = {matrix: rate / found[matrix]}
        rows.append(Row(f"training, {name} preset", found[name], "frames/s", {}))
        rows.append(Row(f"training, {name} preset", rate / 1e9, "GFLOP/s", ratios))
    return rows


def training(settings: TrainSettings, world: World) -> Task:
    """Returns one iteration of training: rollouts and updates."""
    program = make_program(settings, world, seeds=1, iterations_per_chunk=1)
    run = measure.repeated(lambda state: program.advance(state)[0], program.init(seed_keys(1)))
    return Task(run, program.frames_per_iteration, "frame")


def measure_compilation(options: Options) -> list[Row]:
    """Seconds to compile all that a pre-training run needs, nothing cached."""
    rows = []
    cached = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    for name in options.presets:
        preset = PRESETS[name]
        world = make_world(preset.environments, preset.train.worlds, explore=True)
        program = make_program(preset.train, world, preset.seeds, preset.chunk)
        jax.clear_caches()
        began = time.perf_counter()
        keys = seed_keys(preset.seeds)
        program.init.lower(keys).compile()
        program.advance.lower(jax.eval_shape(program.init, keys)).compile()
        rows.append(Row(f"compiling, {name} preset", time.perf_counter() - began, "s", {}))
    jax.config.update("jax_enable_compilation_cache", cached)
    return rows


def write(path: Path, rows: Sequence[Row], arguments: Sequence[str]) -> None:
    """Writes the rows and what they were measured on."""
    content = {"machine": manifest.describe(tuple(arguments)), "rows": [r._asdict() for r in rows]}
    with open(path, "x") as file:
        file.write(json.dumps(content, indent=2) + "\n")


def show(console: Console, rows: Sequence[Row]) -> None:
    """Prints the rows."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=CAPTION, caption_justify="left")
    table.add_column("measured")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("times as much as")
    for row in rows:
        ratios = ", ".join(f"{ratio:.2f} x {peer}" for peer, ratio in row.ratios.items())
        table.add_row(row.what, f"{row.value:,.0f}", row.unit, ratios)
    console.print(table)


GROUPS: dict[str, Callable[[Options], list[Row]]] = {
    "worlds": measure_worlds,
    "counts": measure_counts,
    "training": measure_training,
    "compilation": measure_compilation,
}

if __name__ == "__main__":
    main()
