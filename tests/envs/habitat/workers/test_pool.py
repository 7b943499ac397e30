"""Simulators in processes of their own: how they are asked, lost, replaced and ended."""

import ast
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from envs.habitat.raycast.simulator import open_scene
from envs.habitat.simulator import FORWARD, LEFT, RIGHT, AgentSize, Pose, SimulatorError
from envs.habitat.workers import process, worker
from envs.habitat.workers.pool import MAX_LOSSES, WorkerPool
from envs.habitat.workers.process import Settings, environment
from tests.support.ask_workers import reset, step, teleport
from tests.support.families import others_slow, slow
from tests.support.own_simulator import FLOAT_CELL, GREY_CELL, OWN, WRONG
from tests.support.scenes import box

KEPT_OUT = ("JAX_PLATFORMS", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES", "PYTHONHOME")
HABITAT = Path(worker.__file__).parents[1]


def own(scene: str = "fine", **options) -> Settings:
    return Settings(scene, OWN, **options)


@pytest.fixture
def workers_of():
    """Start workers that end with the test."""
    started = []

    def start(settings: Settings, number: int = 1) -> WorkerPool:
        started.append(WorkerPool(settings, number))
        return started[-1]

    yield start
    for each in started:
        each.close()


def pids(workers: WorkerPool) -> list[int]:
    return [each._process.pid for each in workers._workers if each is not None]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module")
def raycasts(scene) -> Iterator[WorkerPool]:
    """Two embedded simulators, started with variables that they must not get."""
    with pytest.MonkeyPatch.context() as patch:
        for name in KEPT_OUT:
            patch.setitem(process.os.environ, name, "")
        workers = WorkerPool(Settings(scene), 2)
    yield workers
    workers.close()


def test_shows_what_the_simulator_shows_in_process(raycasts, scene) -> None:
    workers, simulator = raycasts, open_scene(scene)
    assert workers.hello.simulator == "raycast"
    assert "embree" in workers.hello.renderer
    assert workers.hello.scene == scene
    starts = reset(workers, [5, 6])
    for index, seed in ((0, 5), (1, 6)):
        observation = simulator.reset(seed)
        assert starts[index] == observation.pose
        np.testing.assert_array_equal(workers.images.views[index], observation.view)
    teleport(workers, [None, starts[0]])
    simulator.teleport(starts[0])
    for action in (FORWARD, LEFT, FORWARD, RIGHT, LEFT):
        poses, observation = step(workers, [RIGHT, action]), simulator.step(action)
        assert poses[1] == observation.pose
        np.testing.assert_array_equal(workers.images.views[1], observation.view)
        np.testing.assert_array_equal(workers.images.panoramas[1], observation.panorama)
    one, other = workers.floor_map(0.5), simulator.floor_map(0.5)
    assert one.corner == other.corner
    np.testing.assert_array_equal(one.walkable, other.walkable)
    np.testing.assert_array_equal(one.picture, other.picture)


def test_simulators_that_take_the_agents_size_get_it(workers_of, tmp_path) -> None:
    path = tmp_path / "sized.py"
    path.write_text(
        Path(OWN)
        .read_text()
        .replace("def open_scene(scene, folder)", "def open_own(scene, folder)")
        + """

def open_scene(scene, folder, agent):
    opened = open_own(scene, folder)
    opened.name = f"{agent.radius} by {agent.height}"
    return opened
"""
    )
    settings = Settings("fine", str(path), agent=AgentSize(0.25, 1.25))
    assert workers_of(settings).hello.simulator == "0.25 by 1.25"


def test_runs_without_linuxs_own_calls(workers_of, monkeypatch) -> None:
    """As on macOS."""
    for name in ("memfd_create", "posix_fallocate"):
        monkeypatch.delattr(os, name)
    assert reset(workers_of(own("fine")), [0]) != [None]


def test_runs_without_jax_and_cuda(raycasts) -> None:
    pid = pids(raycasts)[0]
    assert os.getpgid(pid) != os.getpgid(0)  # a terminal's Ctrl-C does not reach it
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    names = {variable.partition(b"=")[0].decode() for variable in variables if variable}
    assert "PATH" in names
    assert not [name for name in names if name.startswith(("JAX", "XLA", "CUDA", "PYTHONHOME"))]
    maps = Path(f"/proc/{pid}/maps").read_text()
    assert "numpy" in maps
    assert "jaxlib" not in maps


def test_another_interpreter_does_not_get_this_ones_paths(monkeypatch) -> None:
    monkeypatch.setitem(process.os.environ, "PYTHONPATH", "/some/where")
    assert "PYTHONPATH" in environment(sys.executable)
    assert "PYTHONPATH" not in environment("/other/python")


READ_BY_THE_WORKER = (  # pyproject.toml lists these for ruff, too
    "apartments/__init__.py",
    "scene_check.py",
    "scenes.py",
    "simulator.py",
    "workers/worker.py",
    "habitat_sim/adapter.py",
    "habitat_sim/temporary_files.py",
)


@pytest.mark.parametrize("name", READ_BY_THE_WORKER)
def test_what_the_worker_reads_is_python_3_9(name) -> None:
    source = (HABITAT / name).read_text()
    ast.parse(source, feature_version=(3, 9))
    assert "import jax" not in source
    assert "strict=" not in source  # of zip, 3.10
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            raise AssertionError("`|` of types or mappings is Python 3.10's or 3.9's")


def test_what_a_simulator_prints_is_no_answer(workers_of) -> None:
    workers = workers_of(own("talkative"))
    reset(workers, [1])
    for _ in range(5):
        assert step(workers, [FORWARD]) != [None]
    assert workers.restarts == 0


@pytest.mark.parametrize("scene", others_slow(("dead", "silent"), ("dead",)))
def test_a_lost_worker_is_replaced_and_its_episode_cut(workers_of, scene) -> None:
    workers = workers_of(own(scene, step_limit=2.0 if scene == "silent" else 60.0), 2)
    reset(workers, [1, 2])
    before = pids(workers)
    step(workers, [FORWARD, FORWARD])
    teleport(workers, [None, Pose((7.0, 0.0, 0.0), 0.0)])
    step(workers, [FORWARD, LEFT])
    assert step(workers, [FORWARD, FORWARD]) == [None, None]
    assert workers.restarts == 2
    assert not set(before) & set(pids(workers))
    assert not [pid for pid in before if is_alive(pid)]
    start = Pose((4.0, 0.0, 3.0), 20.0)
    assert teleport(workers, [start, start]) == [start, start]
    assert step(workers, [LEFT, FORWARD])[1] == Pose((5.0, 0.0, 3.0), 20.0)
    assert (workers.images.views[0] == 3).all()
    assert (workers.images.panoramas[1] == 35).all()


def test_one_lost_worker_does_not_trouble_the_others(workers_of) -> None:
    workers = workers_of(own(), 3)
    reset(workers, [1, 2, 3])
    os.kill(pids(workers)[1], signal.SIGKILL)
    first, second, third = step(workers, [FORWARD] * 3)
    assert second is None
    assert (first.position[0], third.position[0]) == (2.0, 4.0)
    assert workers.restarts == 1


def test_gives_up_after_several_losses_in_a_row(workers_of) -> None:
    workers = workers_of(own("always_dead"), 2)
    for losses in range(1, MAX_LOSSES):
        reset(workers, [1, 1])
        assert step(workers, [FORWARD, FORWARD]) == [None, None]
        assert workers.restarts == 2 * losses
    with pytest.raises(SimulatorError, match=r"status 3; its last words: cannot go on: no more"):
        step(workers, [FORWARD, FORWARD])


def test_losses_with_steps_between_them_are_not_in_a_row(workers_of) -> None:
    workers = workers_of(own("dead"))
    for losses in range(1, MAX_LOSSES + 1):
        reset(workers, [1])
        assert [step(workers, [FORWARD]) == [None] for _ in range(3)] == [False, False, True]
        assert workers.restarts == losses


def test_an_error_is_told_and_the_simulator_goes_on(workers_of) -> None:
    workers = workers_of(own(), 2)
    with pytest.raises(SimulatorError, match="that is outside"):
        teleport(workers, [Pose((-1.0, 0.0, 0.0), 0.0), Pose((1.0, 0.0, 0.0), 0.0)])
    assert reset(workers, [4, 5])[1].position == (5.0, 0.0, 1.0)
    assert workers.restarts == 0


def test_what_shared_memory_would_change_is_refused(workers_of) -> None:
    """Images of floats, of too large numbers or of one colour, and a place that is none."""
    workers = workers_of(own(), 2)
    refusals = {
        1.0: r"view must be uint8\[64, 64, 3\], not float64\[64, 64, 3\]",
        2.0: r"view must be uint8\[64, 64, 3\], not int64",
        3.0: r"panorama must be .*, not uint8\[4, 64, 64, 1\]",
        4.0: r"pose has a number that is not finite",
        5.0: r"pose must be exact in float32, .*0\.1",
    }
    assert refusals.keys() == WRONG.keys()
    for height, said in refusals.items():
        with pytest.raises(SimulatorError, match=said):
            teleport(workers, [Pose((1.0, height, 0.0), 0.0), Pose((1.0, 0.0, 0.0), 0.0)])
    with pytest.raises(SimulatorError, match=r"floor must be uint8\[1, 7, 3\], not .*\[1, 7, 1\]"):
        workers.floor_map(GREY_CELL)
    floor = workers.floor_map(FLOAT_CELL).walkable
    assert floor.shape == (2, 15)
    assert floor.all()
    assert workers.restarts == 0


def test_an_answer_that_was_given_up_is_not_taken_for_the_next(workers_of) -> None:
    workers = workers_of(own())
    workers._workers[0].send({"do": "reset", "seed": 9})  # as an interrupt leaves it
    assert reset(workers, [2])[0].position == (2.0, 0.0, 1.0)


def test_an_answer_that_was_ready_in_time_is_heard_however_late(workers_of) -> None:
    workers = workers_of(own(step_limit=0.5))
    workers._workers[0].send({"do": "reset", "seed": 3})
    time.sleep(0.6)  # as if this side had been stopped
    assert workers._workers[0].receive()["position"] == [3.0, 0.0, 1.0]


def corrupt(path: Path) -> str:
    path.write_bytes(b"glTF and then nothing")
    return str(path)


def wall(path: Path) -> str:
    box(((-2, 2, -2), (-1.9, 3, 2))).export(path)
    return str(path)


def what_is_held() -> tuple[set[str], int, set[str]]:
    """Names of shared memory, open files, and child processes, zombies among them."""
    children = {
        pid for pid in os.listdir("/proc") if pid.isdigit() and parent_of(pid) == os.getpid()
    }
    return set(os.listdir("/dev/shm")), len(os.listdir("/proc/self/fd")), children


def parent_of(pid: str) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:  # it has just ended
        return 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (lambda _: own("bad_scene"), "there is no scene 'bad_scene'"),
        (lambda _: own("stillborn"), "did not start: .* ValueError: born dead"),
        (lambda _: own(python="/no/such/python"), "/no/such/python cannot be started"),
        (lambda _: own(python="/etc/passwd"), "/etc/passwd cannot be started"),
        (lambda _: Settings("x", "no/such.py"), "cannot be loaded by .*no such file"),
        (lambda _: Settings("x", "magic"), "unknown simulator 'magic'; there are raycast"),
        slow(lambda folder: Settings(corrupt(folder / "y.glb")), "cannot be read as a scene"),
        slow(lambda folder: Settings(wall(folder / "y.glb")), "y.glb has no walkable floor"),
        slow(lambda _: own("silent_start", start_limit=0.5), "did not answer in time"),
    ],
)
def test_says_in_one_line_why_it_cannot_start(settings, message, tmp_path) -> None:
    settings = settings(tmp_path)
    number = 1 if settings.simulator == "raycast" else 2  # raycast takes seconds to start
    gc.collect()
    before = what_is_held()
    with pytest.raises(SimulatorError, match=message) as error:
        WorkerPool(settings, number)
    assert "\n" not in str(error.value)
    del error  # its frames hold the memory's last reference
    gc.collect()
    assert what_is_held() == before


PARENT = """
import os, signal, sys, time
from envs.habitat.workers.process import Settings
from envs.habitat.workers.pool import WorkerPool
from tests.support.ask_workers import reset, step
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
workers = WorkerPool(Settings(sys.argv[1], sys.argv[2], step_limit=600.0), 2)
reset(workers, [1, 2])
print(*[each._process.pid for each in workers._workers], flush=True)
if sys.argv[1] == "silent":
    step(workers, [0, 0]), step(workers, [0, 0])
    [each.send({"do": "step", "action": 0}) for each in workers._workers]
    print("asked", flush=True)
if sys.argv[3] == "wait":
    time.sleep(600)
"""


@pytest.mark.parametrize(
    ("scene", "how"),
    [("fine", "end"), ("fine", signal.SIGINT), ("fine", signal.SIGTERM), ("fine", signal.SIGKILL),
     slow("silent", signal.SIGKILL)],
)  # fmt: skip
def test_workers_end_with_their_parent(scene, how) -> None:
    before = set(os.listdir("/dev/shm"))
    command = [sys.executable, "-c", PARENT, scene, OWN, "end" if how == "end" else "wait"]
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    parent = subprocess.Popen(command, start_new_session=True, **output)
    workers = [int(word) for word in parent.stdout.readline().split()]
    assert len(workers) == 2
    if scene == "silent":
        parent.stdout.readline()
    if how != "end":
        assert all(is_alive(pid) for pid in workers)
        os.killpg(parent.pid, how)  # as a terminal does at Ctrl-C
    parent.wait(60)
    parent.stdout.close()
    until = time.monotonic() + 30
    while any(is_alive(pid) for pid in workers) and time.monotonic() < until:
        time.sleep(0.02)
    assert not [pid for pid in workers if is_alive(pid)]
    assert set(os.listdir("/dev/shm")) == before
