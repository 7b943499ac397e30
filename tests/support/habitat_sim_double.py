"""A stand-in for habitat-sim, as strict as the real one about what may be asked, and when.

A floor of 4 m by 4 m around the origin at y = 0.1, and above it a roof, the larger island.
A picture is one colour, which says where its camera is and where it looks.
"""

import json
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
              "allow_sliding", "navmesh_settings", "scene_dataset_config_file")  # fmt: skip
    gpu_device_id, navmesh_settings, scene_dataset_config_file = 0, None, "default"


class NavMeshSettings(Record):
    fields = ("agent_radius", "agent_height", "cell_height", "include_static_objects", "defaults")

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
    def __init__(self, is_loaded, share=1.0):
        self.is_loaded, self.num_islands, self.seeds = is_loaded, 2, []
        self.share = share  # of the floor that can be walked on
        self.misses = 2  # of the first draws: they give no number

    def seed(self, seed):
        assert 0 <= seed < 2**31
        self.seeds.append(seed)
        self.generator = np.random.default_rng(seed)

    def island_area(self, island):
        return 4 * HALVES[island] ** 2 * self.share

    def get_random_navigable_point(self, max_tries=10, island_index=-1):
        assert self.is_loaded, "the real one ends the process here"
        self.misses -= 1
        if self.misses >= 0:
            return np.full(3, np.nan, np.float32)
        x, z = self.generator.uniform(-1, 1, 2) * HALVES[island_index]
        return np.array((x, HEIGHTS[island_index], z), np.float32)

    def get_island(self, point):
        return FLOOR

    def snap_point(self, point, island_index=-1):
        assert island_index == FLOOR
        x, _, z = point
        if abs(x) > 4:
            return np.full(3, np.nan, np.float32)
        return np.array((np.clip(x, -2, 2), 0.1, np.clip(z, -2, 2)), np.float32)

    def get_bounds(self):
        high = 2.7 if self.share == 1 else 5.0
        return np.array((-2.0, 0.1, -2.0)), np.array((2.0, high, 2.0))

    def get_topdown_island_view(self, meters_per_pixel, height):
        assert height == np.float32(0.1)
        view = np.full((round(4 / meters_per_pixel),) * 2, FLOOR, np.int32)
        view[0, :3] = -1, ROOF, ROOF
        return view


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


class physics:  # noqa: N801 (a module of the real one)
    class MotionType:
        STATIC = "static"


class RigidObject(Record):
    fields = ("motion_type",)


made = []  # all simulators


class Simulator:
    def __init__(self, configuration):
        assert configuration.sim_cfg.gpu_device_id == -1, "the real one ends the process here"
        self.opened = []
        self.kept = {}  # path as it was given -> axis that pointed up when it was read first
        self.reconfigure(configuration)
        made.append(self)

    def reconfigure(self, configuration):
        backend = configuration.sim_cfg
        self.config_file = Path("data/default.pbr_config.json").exists()
        self.objects, self.stage, self.up = {}, {"up": [0, 1, 0]}, [0, 1, 0]
        if backend.scene_dataset_config_file == "default":
            assert backend.scene_id.endswith(".stage_config.json"), "no such scene"
            self.stage = json.loads(Path(backend.scene_id).read_text())
            self.asset = Path(self.stage["render_asset"])
            self.up = self.kept.setdefault(self.stage["render_asset"], list(self.stage["up"]))
        else:
            self.asset = Path(backend.scene_id)
            self.objects = {"a chair": RigidObject(), "a table": RigidObject()}
        assert self.asset.is_absolute()
        assert self.asset.is_file()
        assert self.asset.suffix != ".ply", "no such scene"
        assert backend.navmesh_settings.defaults
        self.opened.append(self.asset)
        self.navigation, self.slides = backend.navmesh_settings, backend.allow_sliding
        self.agents = [Agent(config) for config in configuration.agents]
        share = {"tiny": 0.05, "sideways": 1.0 if self.up == [0, 0, 1] else 0.2, "tower": 0.9}
        self.pathfinder = PathFinder("unwalkable" not in self.asset.name)
        self.pathfinder.share = share.get(self.asset.stem, 1.0)
        self.pathfinder.seed(0)

    def get_rigid_object_manager(self):
        return self

    def get_objects_by_handle_substring(self):
        return self.objects

    def recompute_navmesh(self, pathfinder, settings):
        assert settings.include_static_objects
        assert all(each.motion_type == physics.MotionType.STATIC for each in self.objects.values())
        self.navigation = settings
        return True

    def seed(self, seed):
        self.pathfinder.seed(seed)

    def get_agent(self, index):
        return self.agents[index]

    def step(self, action):
        agent, collided = self.agents[0], False
        assert agent.config.action_space[action].name == action
        if action == "move_forward":
            amount = agent.config.action_space[action].actuation.amount
            x, y, z = agent.state.position
            x, z = x - amount * math.sin(agent.yaw()), z - amount * math.cos(agent.yaw())
            agent.state.position = np.array((np.clip(x, -2, 2), y, np.clip(z, -2, 2)), np.float32)
            collided = max(abs(x), abs(z)) > 2
        return {**self.get_sensor_observations(0), "collided": collided}

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
        """End nothing."""
