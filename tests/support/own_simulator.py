"""A simulator that needs numpy alone, and fails as its scene's name says it should.

Scenes are words: `fine`; `silent` or `dead` (at the third step); `always_dead`; `stillborn`;
`bad_scene`; `nowhere` (to begin); `talkative`.
"""

import os
import sys
import time

import numpy as np

from envs.habitat.simulator import (
    PANORAMA_SHAPE,
    VIEW_SHAPE,
    FloorMap,
    Moment,
    Place,
    SimulatorError,
    turned,
)

OWN = __file__  # as --simulator is given it
BAD_STEP = 3


class OwnSimulator:
    """The view is the heading, the panorama the position."""

    name, version, renderer = "own", "1.0", "none"

    def __init__(self, scene):
        self.scene, self.steps = scene, 0
        self.place = Place((0.0, 0.0, 0.0), 0.0)

    def _moment(self):
        x, _, z = self.place.position
        view = np.full(VIEW_SHAPE, self.place.heading / 10, np.uint8)
        return Moment(self.place, view, np.full(PANORAMA_SHAPE, int(x + 10 * z) % 256, np.uint8))

    def reset(self, seed):
        if self.scene == "nowhere":
            raise SimulatorError("no start position can be drawn from the scene's floor")
        self.place = Place((float(seed % 10), 0.0, 1.0), 0.0)
        return self._moment()

    def teleport(self, place):
        if place.position[0] < 0:
            raise SimulatorError("that is outside")
        self.place = place
        return self._moment()

    def step(self, action):
        self.steps += 1
        if self.steps == BAD_STEP or self.scene == "always_dead":
            self._fail()
        x, y, z = self.place.position
        self.place = Place((x + (action == 0), y, z), turned(self.place.heading, action))
        return self._moment()

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

    def positions(self, seed, count):
        return [(float(seed + k), 0.0, 0.0) for k in range(count)]

    def floor_map(self, cell):
        walkable = np.ones((int(4 / cell), int(30 / cell)), bool)
        return FloorMap((-1.0, 0.0), cell, walkable, np.full((*walkable.shape, 3), 7, np.uint8))

    def close(self):
        pass


def open_scene(scene, folder):
    if scene == "stillborn":
        raise ValueError("born dead")
    if scene == "bad_scene":
        raise SimulatorError("there is no scene 'bad_scene'")
    if scene == "modules":
        print("jax" in sys.modules, "numpy" in sys.modules, file=sys.stderr, flush=True)
    return OwnSimulator(scene)
