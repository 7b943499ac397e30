"""Show policies at play, as the options of `watch` ask."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

import jax
from rich.console import Console

from cbet_jax.analysis.method_style import plain_name
from cbet_jax.config import HabitatSettings, RunSettings, SettingsError
from cbet_jax.runs import compilation_cache
from cbet_jax.runs.directory import RunDirectory
from cbet_jax.runs.saved_policies import load_policies
from cbet_jax.settings.ranges import check_between, check_fields
from envs.habitat import apartments
from envs.minigrid import make_world
from envs.minigrid.generators import NAMES, find
from experiments.common import habitat, opening
from experiments.common.gridworlds import view_options
from experiments.common.outputs import RUNS, given_run, results_folder
from experiments.common.screen import say
from experiments.watching import film, players, rooms_film, terminal
from experiments.watching.options import WatchOptions
from experiments.watching.playing import play, side_by_side

FASTEST_FPS = 50  # GIFs cannot be faster
STEPS = 140  # limit of a film of one episode, as drawing the longest episodes takes minutes


def watch(options: WatchOptions, console: Console) -> None:
    """Show what the options ask for."""
    if options.directory:
        options = replace(options, directory=given_run(options.directory))
    settings = RunDirectory(options.directory).settings() if options.directory else None
    check(options, settings)
    if options.steps is None and options.episodes == 1:
        options = replace(options, steps=STEPS)
    if settings and settings.habitat:
        played = habitat.trusted(settings.habitat, options.simulator)
        watch_scene(options, settings, played, console)
        return
    compilation_cache.use(partial(say, console))
    watch_gridworld(options, settings, console)


def watch_gridworld(options: WatchOptions, settings: RunSettings | None, console: Console) -> None:
    """Show a run's policy, a random one, or both, in a gridworld."""
    env = gridworld(options, settings)
    shown_as = view_options(settings) if settings else {}
    world = make_world((env,), 1, explore=options.explore, **shown_as)
    shown = []
    if settings is not None and options.directory is not None:
        directory = RunDirectory(options.directory)
        say(console, f"loading {directory.root}")
        chosen = options.seed_index, options.checkpoint
        shown.append(players.saved_player(directory, settings, world, *chosen, console))
    if settings is None or options.beside_random:
        random = players.random_player()
        if shown:  # both are rewarded by the run's method
            by = shown[0]
            random = random._replace(intrinsic=by.intrinsic, intrinsic_params=by.intrinsic_params)
        shown.append(random)
    say(console, f"playing {env}")
    key = jax.random.key(options.seed)  # one key for all players: they meet the same levels
    plays = (play(world, player, key, options.episodes, options.steps) for player in shown)
    scenes = side_by_side(*plays)
    titles = [player.title for player in shown]
    if options.terminal:
        terminal.show(console, env, titles, scenes, options.fps)
        return
    only_first = options.out is not None and options.out.suffix.lower() == ".png"
    save(options, env, film.film(env, titles, islice(scenes, 1 if only_first else None)), console)


def watch_scene(
    options: WatchOptions, settings: RunSettings, played: HabitatSettings, console: Console
) -> None:
    """Show a run's policy in a scene of rooms, and refuse options that are for gridworlds."""
    refuse_given(options, ("terminal", "beside_random", "explore"), "gridworlds")
    assert options.directory is not None
    up = options.up or (None if options.env in apartments.NAMES else played.up)
    endless = replace(played, max_steps=played.max_steps + 1, up=up)
    process = habitat.process_settings(
        options.env or settings.environments[0], endless, options.simulator_python
    )
    say(console, f"opening {process.scene}")
    with habitat.simulators(process, 1) as simulators:
        world = habitat.worlds(endless, simulators)
        directory = RunDirectory(options.directory)
        policies = load_policies(directory, settings, world, options.checkpoint)
        opening.tell_damaged(policies.loaded, console)
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
        scene, drawn = simulators.scene_name, simulators.floor_map(rooms_film.MAP_CELL_METRES)
        player = players.describe(settings, options.seed_index, policies.loaded)
        frames = (rooms_film.frame(f"{scene}: {player}", drawn, sight) for sight in sights)
        save(options, scene, frames, console)


def save(
    options: WatchOptions, name: str, frames: Iterator[film.Picture], console: Console
) -> None:
    """Write frames to --out, or to a new file beside the run, named after the world."""
    default = (options.directory or RUNS) / f"watch-{plain_name(name)}.gif"
    numbered = options.out is None
    with console.status("drawing"):
        out, count = film.write(options.out or default, frames, options.fps, numbered=numbered)
    say(console, f"saved: {out} ({count} frame{'s' * (count != 1)})")


def check(options: WatchOptions, settings: RunSettings | None) -> None:
    """Refuse impossible options, given the run's settings (None: a random policy)."""
    check_fields(options)
    if options.fps > FASTEST_FPS:
        raise SettingsError(f"fps must be at most {FASTEST_FPS}, not {options.fps}")
    check_between("seed_index", options.seed_index, 0, (settings.seeds if settings else 1) - 1)
    if settings is None and options.checkpoint is not None:
        raise SettingsError("--checkpoint needs DIR, the run that it belongs to")
    if settings is None and options.beside_random:
        raise SettingsError("--beside-random needs DIR, the run to show beside it")
    if options.method not in (None, settings and settings.train.method):
        there = f"the run's method is {settings.train.method}" if settings else "there is no run"
        raise SettingsError(f"{there}: leave --method {options.method} out")
    check_out(options)
    if settings is None or settings.habitat is None:
        refuse_given(options, ("up", "simulator", "simulator_python"), "scenes of rooms")
        gridworld(options, settings)
    if not options.terminal:
        folder = options.out.parent if options.out else None
        results_folder(folder, options.directory or RUNS, "file")


def refuse_given(options: WatchOptions, names: Iterable[str], worlds: str) -> None:
    """Refuse options that have an effect in other worlds only."""
    for name in names:
        if getattr(options, name):
            raise SettingsError(f"--{name.replace('_', '-')} is for {worlds}: leave it out")


def gridworld(options: WatchOptions, settings: RunSettings | None) -> str:
    """Return the gridworld to play, or refuse a missing or unknown name."""
    env = options.env
    if env is None and settings is not None and options.directory is not None:
        env = players.liveliest(RunDirectory(options.directory), settings)
    if env is None:
        raise SettingsError(f"give a run, DIR, or a world, --env NAME (such as {NAMES[0]})")
    find(env)
    return env


def check_out(options: WatchOptions) -> None:
    """Refuse an --out that cannot be written."""
    out = options.out
    if out is None:
        return
    if options.terminal:
        raise SettingsError("--terminal writes no file: leave out --out")
    if out.suffix.lower() not in film.WRITERS:
        known = ", ".join(film.WRITERS)
        raise SettingsError(f"the name of --out must end in one of {known}; {out} does not")
    if out.suffix.lower() == ".mp4":
        film.check_ffmpeg()
    if out.exists():
        raise SettingsError(f"{out} already exists: choose another name")
