"""A simulator that needs numpy alone, and fails as its scene's name says it should.

Scenes are words: `fine`; `silent` or `dead` (at the third step); `always_dead`; `stillborn`;
`silent_start`; `bad_scene`; `nowhere` (to begin); `talkative`. At the heights of `WRONG` it shows
something wrong; its map with cells of `FLOAT_CELL` metres has floats, with `GREY_CELL` one colour.
"""

import os
import sys
import time

import numpy as np

from envs.habitat.simulator import (
    PANORAMA_SHAPE,
    VIEW_SHAPE,
    FloorMap,
    Observation,
    Pose,
    SimulatorError,
    turn,
)

OWN = __file__  # as --simulator is given it
BAD_STEP = 3
WRONG = {
    1.0: {"view": np.full(VIEW_SHAPE, 0.5)},
    2.0: {"view": np.full(VIEW_SHAPE, 300)},
    3.0: {"panorama": np.zeros((*PANORAMA_SHAPE[:-1], 1), np.uint8)},
    4.0: {"pose": Pose((float("nan"), 0.0, 0.0), 0.0)},
    5.0: {"pose": Pose((0.1, 0.0, 0.0), 0.0)},
}
FLOAT_CELL, GREY_CELL = 2.0, 4.0


class OwnSimulator:
    """The view is the heading, the panorama the position."""

    name, version, renderer = "own", "1.0", "none"

    def __init__(self, scene):
        self.scene, self.steps = scene, 0
        self.pose = Pose((0.0, 0.0, 0.0), 0.0)

    def _observation(self):
        x, _, z = self.pose.position
        view = np.full(VIEW_SHAPE, self.pose.heading / 10, np.uint8)
        return Observation(
            self.pose, view, np.full(PANORAMA_SHAPE, int(x + 10 * z) % 256, np.uint8)
        )

    def reset(self, seed):
        if self.scene == "nowhere":
            raise SimulatorError("found no start position on the scene's floor")
        self.pose = Pose((float(seed % 10), 0.0, 1.0), 0.0)
        return self._observation()

    def teleport(self, pose):
        if pose.position[0] < 0:
            raise SimulatorError("that is outside")
        self.pose = pose
        return self._observation()._replace(**WRONG.get(pose.position[1], {}))

    def step(self, action):
        self.steps += 1
        if self.steps == BAD_STEP or self.scene == "always_dead":
            self._fail()
        x, y, z = self.pose.position
        self.pose = Pose((x + (action == 0), y, z), turn(self.pose.heading, action))
        return self._observation()

    def _fail(self):
        if self.scene == "silent":
            time.sleep(600)
        if "dead" in self.scene:
            print("something to say", file=sys.stderr)
            print("cannot go on: no more light", file=sys.stderr, flush=True)
            os._exit(3)
        if self.scene == "talkative":
            print("{} not an answer")
            os.write(1, b"nor is this\n")

    def floor_map(self, cell):
        walkable = np.ones((int(4 / cell), int(30 / cell)), float if cell == FLOAT_CELL else bool)
        picture = np.full((*walkable.shape, 1 if cell == GREY_CELL else 3), 7, np.uint8)
        return FloorMap((-1.0, 0.0), cell, walkable, picture)

    def close(self):
        pass


def open_scene(scene, folder):
    if scene == "stillborn":
        raise ValueError("born dead")
    if scene == "bad_scene":
        raise SimulatorError("there is no scene 'bad_scene'")
    if scene == "silent_start":
        time.sleep(600)
    return OwnSimulator(scene)
