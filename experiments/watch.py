"""Watches a policy play: `python -m experiments.watch DIR`, or `--env NAME` for a random one.

Draws the whole grid, the agent's view, and the rewards of each step to a GIF or an MP4, the
first moment of a level to a PNG, or all of it as text in the terminal. Of a run in Habitat it
draws what the agent sees, the panorama, and its path on a map.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import jax
import tyro
from rich.console import Console

from cbet_jax.agent import AgentParams, make_agent, uniform
from cbet_jax.config import HabitatSettings, RunSettings, SettingsError, TrainSettings
from cbet_jax.intrinsic import make_intrinsic
from cbet_jax.runs.checkpoint import Loaded
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.saved_policies import load, load_policies
from cbet_jax.train import seed_keys
from envs.habitat.simulator import SimulatorError
from envs.minigrid import make_world, rules
from envs.registry import UnknownEnvironment, find, names
from experiments.common import cli, habitat, training
from experiments.common.outputs import unused
from experiments.common.training import RUNS
from experiments.watching import film, rooms_film, terminal
from experiments.watching.playing import Player, play

PROGRAM = "python -m experiments.watch"
FASTEST = 50  # frames a second that a GIF can show
RUN = tyro.conf.arg(metavar="[DIR]", help="of the run (without: actions drawn with equal chances)")


@dataclass(frozen=True)
class Options:
    """Shows a run's policy, or a random one, at play in one world."""

    directory: Annotated[Path | None, tyro.conf.Positional, RUN] = None
    env: str | None = None  # the world, or scene (default: the run's first)
    out: Path | None = None  # .gif, .mp4 or .png, a level's first moment (default: a new .gif)
    terminal: bool = False  # play as text in the terminal, write no file
    explore: bool = False  # success does not end the episode
    episodes: int = 1  # to play
    steps: int | None = None  # to play at most, in all episodes together
    seed: int = 0  # of the levels and the actions
    seed_index: int = 0  # which of the run's seeds plays
    checkpoint: int | None = None  # frames of the checkpoint (default: the newest)
    fps: int = 8  # frames a second
    simulator_python: str | None = None  # the interpreter that a scene's simulator is installed in


def main(arguments: Sequence[str] | None = None) -> None:
    """Shows what the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    console = Console()
    with cli.user_errors(UnknownEnvironment, SimulatorError):
        options: Options = cli.parse(Options, arguments, prog=PROGRAM)
        settings = RunDirectory(options.directory).settings() if options.directory else None
        check(options, settings)
        if settings and settings.habitat:
            watch_scene(options, settings, settings.habitat, console)
        else:
            watch_gridworld(options, settings, console)


def watch_gridworld(options: Options, settings: RunSettings | None, console: Console) -> None:
    """Shows a policy, or a random one, in a gridworld."""
    env = gridworld(options, settings)
    player = trained(options, settings, console) if settings else random_player()
    world = make_world((env,), 1, explore=options.explore)
    key = jax.random.key(options.seed)
    moments = play(world, player, key, options.episodes, options.steps)
    title = f"{env}: {player.title}"
    if options.terminal:
        terminal.show(console, title, moments, options.fps)
        return
    save(options, env, (film.frame(title, moment) for moment in moments), console)


def watch_scene(
    options: Options, settings: RunSettings, played: HabitatSettings, console: Console
) -> None:
    """Shows a run's policy in a scene of rooms.

    Raises:
        SettingsError: it is to be shown as text. SimulatorError: the scene cannot be played.
    """
    if options.terminal:
        raise SettingsError("--terminal shows gridworlds: a scene of rooms needs a file")
    assert options.directory is not None
    endless = replace(played, max_steps=played.max_steps + 1)
    process = habitat.process_settings(
        options.env or settings.environments[0], endless, options.simulator_python
    )
    with habitat.simulators(process, 1) as simulators:
        world = habitat.worlds(endless, simulators)
        directory = RunDirectory(options.directory)
        policies = load_policies(directory, settings, world, options.checkpoint)
        training.tell_damaged(policies.loaded, console)
        sights = rooms_film.play(
            world,
            policies.agent,
            jax.tree.map(lambda leaf: leaf[options.seed_index], policies.params),
            jax.random.key(options.seed),
            options.episodes,
            played.max_steps,
            options.steps,
            random_starts=played.random_starts,
        )
        scene, drawn = simulators.scene_name, simulators.floor_map(rooms_film.MAP_CELL)
        title = f"{scene}: {told(settings, options, policies.loaded)}"
        save(options, scene, (rooms_film.frame(title, drawn, s) for s in sights), console)


def save(options: Options, name: str, frames: Iterator[film.Picture], console: Console) -> None:
    """Writes frames to the file that is asked for, or to a new one beside the run."""
    out = options.out or unused((options.directory or RUNS) / f"watch-{name}.gif")
    with console.status(f"playing {name}"):
        count = film.write(out, frames, options.fps)
    console.print(f"saved: {out} ({count} frames)", soft_wrap=True, highlight=False)


def told(settings: RunSettings, options: Options, loaded: Loaded) -> str:
    """Returns who plays, for people to read."""
    seed = settings.first_seed + options.seed_index
    return f"{settings.train.method}, seed {seed}, {loaded.position.frames:,} frames"


def check(options: Options, settings: RunSettings | None) -> None:
    """Refuses what cannot be done.

    Args:
        options: the command line.
        settings: of the run, None for a random policy.

    Raises:
        SettingsError: always, if there is something to refuse.
    """
    for name, least in (("episodes", 1), ("steps", 1), ("seed", 0), ("fps", 1)):
        value = getattr(options, name)
        if value is not None and value < least:
            raise SettingsError(f"{name} must be at least {least}, not {value}")
    if options.fps > FASTEST:
        raise SettingsError(f"fps must be at most {FASTEST}, not {options.fps}")
    seeds = settings.seeds if settings else 1
    if not 0 <= options.seed_index < seeds:
        raise SettingsError(f"seed_index must lie in 0..{seeds - 1}, not {options.seed_index}")
    if settings is None and options.checkpoint is not None:
        raise SettingsError("--checkpoint needs DIR, the run that it belongs to")
    check_out(options)


def gridworld(options: Options, settings: RunSettings | None) -> str:
    """Returns the gridworld to play.

    Raises:
        SettingsError: none is named. UnknownEnvironment: there is none of that name.
    """
    env = options.env or (settings.environments[0] if settings else None)
    if env is None:
        raise SettingsError(f"give a run, DIR, or a world, --env NAME (such as {names()[0]})")
    find(env)
    return env


def check_out(options: Options) -> None:
    """Refuses a file that cannot be written.

    Raises:
        SettingsError: always, if there is something to refuse.
    """
    out = options.out
    if out is None:
        return
    if options.terminal:
        raise SettingsError("--terminal writes no file: leave out --out")
    if out.suffix.lower() not in film.WRITERS:
        known = ", ".join(film.WRITERS)
        raise SettingsError(f"the name of --out must end in one of {known}; {out} does not")
    if out.exists():
        raise SettingsError(f"{out} already exists: choose another name")


def random_player() -> Player:
    """Returns who draws every action with the same chance, rewarded by C-BET."""
    actions = len(rules.ACTIONS)
    intrinsic = make_intrinsic(TrainSettings(), actions)
    return Player("uniformly random", uniform(actions), AgentParams(()), intrinsic, None)


def trained(options: Options, settings: RunSettings, console: Console) -> Player:
    """Returns one of a run's seeds, rewarded by the run's method.

    Raises:
        RunDirectoryError: there is no good checkpoint.
    """
    assert options.directory is not None
    world = make_world(settings.environments, 1, explore=settings.explore)
    keys = seed_keys(settings.seeds, settings.first_seed)
    template = jax.eval_shape(training.build(settings).init, keys)
    loaded = load(RunDirectory(options.directory), settings, template, options.checkpoint)
    training.tell_damaged(loaded, console)
    learner = jax.tree.map(lambda leaf: leaf[options.seed_index], loaded.state.learner)
    return Player(
        title=told(settings, options, loaded),
        agent=make_agent(
            settings.train.network, settings.transfer, world.num_actions, world.view_shape
        ),
        params=learner.agent,
        intrinsic=make_intrinsic(settings.train, world.num_actions),
        intrinsic_params=learner.intrinsic,
    )


if __name__ == "__main__":
    main()
