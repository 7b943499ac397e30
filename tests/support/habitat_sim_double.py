"""A stand-in for habitat-sim, as strict as the real one about what may be asked, and when.

A floor of 4 m by 4 m around the origin at y = 0.1, and above it a roof, the larger island.
A picture is one colour, which says where its camera is and where it looks.
"""

import math
from pathlib import Path

import numpy as np

__version__ = "0.3.3"

ROOF, FLOOR = 0, 1
HEIGHTS, HALVES = {ROOF: 2.7, FLOOR: 0.1}, {ROOF: 3.0, FLOOR: 2.0}


class Record:
    """Has the fields that it names, and no others."""

    fields = ()

    def __setattr__(self, name, value):
        if name not in self.fields:
            raise AttributeError(f"{type(self).__name__} has no {name}")
        super().__setattr__(name, value)


class SensorType:
    COLOR = "color"


class CameraSensorSpec(Record):
    fields = ("uuid", "sensor_type", "resolution", "hfov", "position", "orientation")


class SimulatorConfiguration(Record):
    fields = ("scene_id", "gpu_device_id", "random_seed", "enable_physics", "load_semantic_mesh",
              "allow_sliding", "navmesh_settings")  # fmt: skip
    gpu_device_id, navmesh_settings = 0, None


class NavMeshSettings(Record):
    fields = ("agent_radius", "agent_height", "defaults")

    def set_defaults(self):
        self.defaults = True


class AgentConfiguration(Record):
    fields = ("height", "radius", "sensor_specifications", "action_space")
    action_space = None


class ActuationSpec:
    def __init__(self, amount):
        self.amount = amount


class ActionSpec:
    def __init__(self, name, actuation):
        self.name, self.actuation = name, actuation


class AgentState(Record):
    fields = ("position", "rotation")


class Configuration:
    def __init__(self, sim_cfg, agents):
        self.sim_cfg, self.agents = sim_cfg, agents


class PathFinder:
    def __init__(self, is_loaded):
        self.is_loaded, self.num_islands, self.seeds = is_loaded, 2, []
        self.misses = 2  # of the first draws: they give no number

    def seed(self, seed):
        assert 0 <= seed < 2**31
        self.seeds.append(seed)
        self.generator = np.random.default_rng(seed)

    def island_area(self, island):
        return 4 * HALVES[island] ** 2

    def get_random_navigable_point(self, max_tries=10, island_index=-1):
        assert self.is_loaded, "the real one ends the process here"
        self.misses -= 1
        if self.misses >= 0:
            return np.full(3, np.nan, np.float32)
        x, z = self.generator.uniform(-1, 1, 2) * HALVES[island_index]
        return np.array((x, HEIGHTS[island_index], z), np.float32)

    def snap_point(self, point):
        x, _, z = point
        if abs(x) > 4:
            return np.full(3, np.nan, np.float32)
        return np.array((np.clip(x, -2, 2), 0.1, np.clip(z, -2, 2)), np.float32)

    def get_bounds(self):
        return np.array((-2.0, 0.1, -2.0)), np.array((2.0, 2.7, 2.0))

    def get_topdown_view(self, meters_per_pixel, height):
        assert height == np.float32(0.1)
        return np.ones((round(4 / meters_per_pixel),) * 2, bool)


class Agent:
    def __init__(self, config):
        self.config, self.drawn = config, 0
        self.state = AgentState()
        self.state.position, self.state.rotation = np.zeros(3, np.float32), [0, 0, 0, 1]

    def set_state(self, state, reset_sensors=True, infer_sensor_states=True, is_initial=False):
        if not np.isfinite(state.position).all():
            raise ValueError("the position is not a number")
        assert math.isclose(np.linalg.norm(state.rotation), 1)
        self.state = state

    def get_state(self):
        return self.state

    def yaw(self):
        _, y, _, w = self.state.rotation
        return 2 * math.atan2(y, w)


made = []  # all simulators


class Simulator:
    def __init__(self, configuration):
        backend = configuration.sim_cfg
        assert backend.gpu_device_id == -1, "the real one ends the process here"
        assert Path(backend.scene_id).is_absolute()
        assert backend.scene_id.endswith(".glb"), "no such scene"
        assert backend.navmesh_settings.defaults
        self.navigation = backend.navmesh_settings
        self.config_file = Path("data/default.pbr_config.json").exists()
        self.agents = [Agent(config) for config in configuration.agents]
        self.pathfinder = PathFinder("unwalkable" not in backend.scene_id)
        self.pathfinder.seed(0)
        self.open, self.recomputed = True, 0
        made.append(self)

    def recompute_navmesh(self, pathfinder, settings):
        self.recomputed += 1
        return False

    def seed(self, seed):
        self.pathfinder.seed(seed)

    def get_agent(self, index):
        return self.agents[index]

    def step(self, action):
        agent = self.agents[0]
        assert agent.config.action_space[action].name == action
        if action == "move_forward":
            amount = agent.config.action_space[action].actuation.amount
            x, y, z = agent.state.position
            x, z = x - amount * math.sin(agent.yaw()), z - amount * math.cos(agent.yaw())
            agent.state.position = np.array((np.clip(x, -2, 2), y, np.clip(z, -2, 2)), np.float32)
        return {**self.get_sensor_observations(0), "collided": False}

    def get_sensor_observations(self, agent_ids=0):
        agent = self.agents[agent_ids]
        agent.drawn += 1
        x, _, z = agent.state.position
        pictures = {}
        for camera in agent.config.sensor_specifications:
            degrees = math.degrees(agent.yaw() + camera.orientation[1]) % 360
            color = (round(100 + 20 * x), round(100 + 20 * z), round(degrees / 2) % 180, 255)
            pictures[camera.uuid] = np.full((*camera.resolution, 4), color, np.uint8)
        return pictures

    def close(self):
        self.open = False
