"""Walk about scenes with the saved policies of runs, and with two random ones."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax

from cbet_jax.agent import AgentParams, uniform
from cbet_jax.config import HabitatSettings, RunSettings, SettingsError
from cbet_jax.runs.directory import Checkpoint, RunDirectory
from cbet_jax.runs.saved_policies import LoadedParams, Policies, load_policies, untrained
from cbet_jax.settings.as_json import first_difference
from envs.habitat.scenes import scene_name
from envs.types import World
from experiments.common import habitat
from experiments.common.outputs import distinct_names
from experiments.evaluation import walks
from experiments.evaluation.evaluation_table import UNIFORM, UNTRAINED
from experiments.evaluation.walk_pictures import Pretraining
from experiments.evaluation.walks import Places, Walked, Walker

MAP_CELL_METRES = 0.1


class EvaluatedRun(NamedTuple):
    """A run whose policies are evaluated."""

    name: str  # the policies' name in the table
    directory: RunDirectory
    settings: RunSettings
    habitat: HabitatSettings  # how its own scene is played

    @property
    def pretraining(self) -> Pretraining:
        """The scene and the metrics of its training."""
        scene = scene_name(self.settings.environments[0])
        return Pretraining(self.name, scene, self.directory.metrics)


class WalkPlan(NamedTuple):
    """The conditions of the walks."""

    habitat: HabitatSettings
    episodes: int  # number for each policy in each scene
    steps: int  # length of an episode
    workers: int  # simulators at once
    seed: int  # draws starts and actions
    checkpoint: Checkpoint  # frames of the checkpoints (None: each run's newest)
    python: str | None  # the interpreter with the simulator installed


class Player(NamedTuple):
    """One policy, with all of its seeds."""

    name: str
    walker: Walker
    seeds: dict[int, AgentParams]


def open_runs(paths: Sequence[Path]) -> list[EvaluatedRun]:
    """Read the settings of runs that are evaluated together.

    Runs that differ only in their seeds are one policy. Policies are named after their methods, or
    after their directories if two share a method.

    Raises:
        SettingsError: two runs play scenes differently, or are the same.
    """
    directories = [RunDirectory(path) for path in paths]
    settings = [habitat.habitat_settings(directory) for directory in directories]
    names = _names(distinct_names(paths), [run for run, _ in settings])
    for name in {UNTRAINED, UNIFORM}.intersection(names):
        raise SettingsError(f"the table calls random play {name!r}: rename that run's directory")
    for path, (_, played) in zip(paths, settings, strict=True):
        first, other = (asdict(_comparable(each)) for each in (settings[0][1], played))
        difference = first_difference(first, other)
        if difference:
            raise SettingsError(
                f"{path} plays scenes in another way than {paths[0]} ({difference}): evaluate it "
                "by itself"
            )
    return [
        EvaluatedRun(name, directory, *both)
        for name, directory, both in zip(names, directories, settings, strict=True)
    ]


def _names(directories: Sequence[str], settings: Sequence[RunSettings]) -> list[str]:
    """Return the name of each run's policy; runs of one policy share it."""
    seedless = [replace(run, seeds=1, first_seed=0) for run in settings]
    seeds = [range(run.first_seed, run.first_seed + run.seeds) for run in settings]
    firsts = []  # the index of each policy's first run
    for number, run in enumerate(seedless):
        same = [at for at, other in enumerate(seedless) if other == run]
        each = [seed for at in same for seed in seeds[at]]
        firsts.append(same[0] if len(set(each)) == len(each) else number)
    methods = [settings[first].train.method for first in firsts]
    return methods if len(set(methods)) == len(set(firsts)) else [directories[at] for at in firsts]


def _comparable(played: HabitatSettings) -> HabitatSettings:
    """Return Habitat settings without the ones that an evaluation decides."""
    return replace(played, max_steps=1, random_starts=False, shared_start=True)


def play(
    runs: Sequence[EvaluatedRun], plan: WalkPlan, scene: str
) -> tuple[Walked, list[LoadedParams]]:
    """Play every policy in one scene, all from the same starts.

    Returns:
        The walks, and the checkpoint of each run.
    """
    number = min(plan.workers, plan.episodes)
    # Only counts read panoramas, and nothing counts here.
    process = habitat.process_settings(scene, plan.habitat, plan.python, panoramas=False)
    with habitat.simulators(process, number) as simulators:
        world = habitat.worlds(plan.habitat, simulators)
        policies = [
            load_policies(run.directory, run.settings, world, plan.checkpoint) for run in runs
        ]
        loaded = [each.loaded for each in policies]
        _refuse_unequal(runs, loaded)
        players = _players(runs, policies, plan, world)
        places = {player.name: _walk(player, plan) for player in players}
        return Walked(simulators.scene_name, simulators.floor_map(MAP_CELL_METRES), places), loaded


def _refuse_unequal(runs: Sequence[EvaluatedRun], loaded: Sequence[LoadedParams]) -> None:
    """Refuse seeds of one policy that were saved after different numbers of frames."""
    first: dict[str, int] = {}
    for run, checkpoint in zip(runs, loaded, strict=True):
        frames = checkpoint.position.frames
        if first.setdefault(run.name, frames) != frames:
            raise SettingsError(
                f"{run.directory.root} has trained for {frames:,} frames, another seed of "
                f"{run.name} for {first[run.name]:,}: choose a --checkpoint of both, or evaluate "
                "them one by one"
            )


def _players(
    runs: Sequence[EvaluatedRun], policies: Sequence[Policies], plan: WalkPlan, world: World
) -> list[Player]:
    """Return who plays: the runs' policies, networks like the first run's, and random actions."""
    walkers: dict[Any, Walker] = {}  # one compiled program for each kind of agent
    players: dict[str, Player] = {}
    drawn: dict[int, AgentParams] = {}
    for run, learnt in zip(runs, policies, strict=True):
        kind = run.settings.train.network, run.settings.transfer
        if kind not in walkers:
            walkers[kind] = walks.make_walker(world, learnt.agent, plan.steps)
        player = players.setdefault(run.name, Player(run.name, walkers[kind], {}))
        player.seeds.update(_by_seed(learnt.params, run.settings))
        if run.name == runs[0].name:
            drawn.update(_by_seed(untrained(learnt, run.settings), run.settings))
    random_walker = walks.make_walker(world, uniform(world.num_actions), plan.steps)
    return [
        *players.values(),
        Player(UNTRAINED, players[runs[0].name].walker, drawn),
        Player(UNIFORM, random_walker, {0: AgentParams(())}),
    ]


def _walk(player: Player, plan: WalkPlan) -> dict[int, Places]:
    return {
        seed: walks.play(
            player.walker,
            params,
            jax.random.key(plan.seed),
            plan.episodes,
            random_starts=plan.habitat.random_starts,
        )
        for seed, params in sorted(player.seeds.items())
    }


def _by_seed(params: AgentParams, settings: RunSettings) -> dict[int, AgentParams]:
    """Return the parameters of each seed."""
    return {
        settings.first_seed + index: jax.tree.map(lambda leaf: leaf[index], params)  # noqa: B023
        for index in range(settings.seeds)
    }
