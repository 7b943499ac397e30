"""The options of `watch`, in a file that imports nothing slow."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cbet_jax.config import Axis
from cbet_jax.runs.directory import Checkpoint
from cbet_jax.settings.ranges import Episodes, PositiveInt, Seed, Steps

RUN = tyro.conf.arg(
    metavar="[DIR]",
    help="the run's directory, or pretrained/NAME (None: a uniformly random policy)",
)


@dataclass(frozen=True)
class WatchOptions:
    """Show a run's policy, or a random one, at play in one world."""

    directory: Annotated[Path | None, tyro.conf.Positional, RUN] = None
    #: the world, or scene (None: the run's with most interactions, or its first scene)
    env: str | None = None
    beside_random: bool = False  # show a random policy on the same level, beside the run's
    out: Path | None = None  # .gif, .mp4 or .png, a level's first moment (None: a new .gif)
    terminal: bool = False  # play as text in the terminal, write no file
    explore: bool = False  # success does not end the episode
    episodes: Episodes = 1  # number of episodes to play
    #: limit on the steps of all episodes together (None: 140 for one episode, else none)
    steps: Steps | None = None
    seed: Seed = 0  # draws the levels and the actions
    seed_index: int = 0  # which of the run's seeds plays
    #: frames of a checkpoint, or of kept policies: these show no reward of a method with networks
    #: (None: a task's best, else the newest)
    checkpoint: Checkpoint = None
    fps: PositiveInt = 8  # frames a second
    #: the run's method again, if it is your own file (FILE.py:FUNCTION)
    method: str | None = None
    #: the axis that points up in a scene's file (None: as in the run)
    up: Axis | None = None
    #: the run's simulator again, if it is a file: only the command line may choose code
    simulator: str | None = None
    simulator_python: str | None = None  # the interpreter with the simulator installed
