"""What `watch` is asked for. Nothing here takes long to import."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from cbet_jax.config import Axis
from cbet_jax.settings.types import Episodes, PositiveInt, Seed, Steps

RUN = tyro.conf.arg(
    metavar="[DIR]",
    help="of the run, or pretrained/NAME (without: actions drawn with equal chances)",
)


@dataclass(frozen=True)
class WatchOptions:
    """Show a run's policy, or a random one, at play in one world."""

    directory: Annotated[Path | None, tyro.conf.Positional, RUN] = None
    #: the world, or scene (default: the run's with most interactions, or its first scene)
    env: str | None = None
    beside_random: bool = False  # show a random policy on the same level, beside the run's
    out: Path | None = None  # .gif, .mp4 or .png, a level's first moment (default: a new .gif)
    terminal: bool = False  # play as text in the terminal, write no file
    explore: bool = False  # success does not end the episode
    episodes: Episodes = 1  # to play
    #: to play at most, in all episodes together (default: 140 of one episode, all of several)
    steps: Steps | None = None
    seed: Seed = 0  # of the levels and the actions
    seed_index: int = 0  # which of the run's seeds plays
    #: frames of the checkpoint (default: the newest), or of policies kept with --keep-at. Those of
    #: rnd, curiosity and ride cannot be shown in gridworlds: the method's networks are not kept
    checkpoint: int | None = None
    fps: PositiveInt = 8  # frames a second
    #: the run's method again, where it is a file of one's own (FILE.py:FUNCTION)
    method: str | None = None
    #: axis that points up in the file of a scene (default: as in the run)
    up: Axis | None = None
    #: the run's simulator again, where it is a file: a file is code, which no run names by itself
    simulator: str | None = None
    simulator_python: str | None = None  # the interpreter that a scene's simulator is installed in
