"""Command lines that are refused: one line says why, and nothing is written."""

import shlex

import pytest

from experiments import (
    benchmark,
    chainworld,
    habitat_pretrain,
    minigrid_evaluate,
    minigrid_pretrain,
    minigrid_transfer,
    new_method,
    reward_maps,
    sweep,
    watch,
)
from experiments.common import habitat
from tests.support.own_simulator import OWN
from tests.support.refusal import refused
from tests.support.tiny import pretrained

REFUSED = {  # command -> words of the line -> part of the answer
    minigrid_pretrain: {
        "--envs KeyCoridorS3R3": "KeyCorridorS3R3",
        "--envs Navix-FourRoms-v0": "did you mean Navix-",
        "--envs Navix-Fetch-5x5-N2-v0": "Navix-Fetch-5x5-N2-v0",
        "--envs Fetch-5x5-N2": "mission is in words",
        "--envs Unlock?max_steps=0": "N in 1..9999999",
        "--envs": "--envs names nothing",
        "--out ''": "--out is given an empty value",
        "--method :make": ":make cannot be loaded",
        "--method cbett": "cbet",
        "--method ablation-produkt": "ablation-product",
        "--counts.states panorama": "panoramic",
        "--method ride --counts.reset-probability 0": "episode",
        "--preset lptop": "laptop",
        "--frmes 10": "--frames",
        "--frames many": "many",
        "--own a=1 --own b=1": "--own is given twice",
        "--frames": "--frames",
        "--worlds 41 --batch 32": "do not divide",
        "--optimizer.learning-rate nan": "a finite number of at most 3.4e38, not nan",
        "--counts.keys ternary": "counts.keys=ternary codes the pixels",
        "--frames 9 --keep-at 10": "keep_at must be in 1..9, not 10",
        "--method count --seeds 10000": "smaller --counts.capacity",
        "--view pixels": "full-rgb",
        "--view-size 6": "view_size must be odd and in 3..31, not 6",
        "--view full --view-size 9": "a full view has no view_size",
        "--resume": "--out",
        "--resume --out nowhere": "holds no run",
    },
    habitat_pretrain: {
        "--agent-radius 1e9": "agent_radius must be at most 10",
        f"--simulator {OWN} --scene bad_scene": "no scene 'bad_scene'",
        "--simulator habitat": "habitat",
        "--simulator-python /no/python": "cannot be started",
        "--simulator habitat_sim": "conda create",
        "--devices 2": "leave --devices out",
    },
    minigrid_transfer: {  # RUN is a run of two seeds with a checkpoint at 80 frames
        "--from RUN --env Unlokc": "Unlock",
        "--from RUN --env Unlock --seeds 3": "--seed-index",
        "--from RUN --env Unlock --seed-index 2": "seed_index must be in 0..1",
        "--from RUN --env Unlock --checkpoint 17": "there: 80",
        "--from RUN --env Unlock --method cbet": "own reward only: leave --method out",
        "--from RUN --env Unlock --extrinsic-weight 0": "--extrinsic-weight above 0",
        "--from nowhere --env Unlock": "nowhere holds no run",
        "--from RUN --env Unlock --fine-tune --alpha 2": "leave alpha and alpha_frames out",
    },
    minigrid_evaluate: {
        "RUN --envs KeyCoridorS3R3": "KeyCorridorS3R3",
        "RUN --episodes 0": "episodes must be at least 1",
        "RUN --envs": "--envs names nothing",
        "RUN --checkpoint 17": "there: 80",
        "RUN --out here.gif": "here.gif: File exists; name another folder with --out",
        "RUN nowhere": "holds no run",
        "RUN --episdes 3": "--episodes",
    },
    watch: {
        "": "--env NAME",
        "--env KeyCoridorS3R3": "KeyCorridorS3R3",
        "--env Unlock --out film.avi": ".gif, .mp4, .png",
        "--env Unlock --out here.gif": "already exists",
        "--env Unlock --out a.gif --terminal": "--terminal",
        "--env Unlock --fps 51": "fps must be at most 50",
        "--env Unlock --seed-index 1": "seed_index must be in 0..0",
        "--env Unlock --checkpoint 80": "--checkpoint needs DIR",
        "--env Unlock --beside-random": "--beside-random needs DIR",
        "--env Unlock --method rnd": "there is no run: leave --method rnd out",
        "--env Unlock --simulator no.py": "--simulator is for scenes of rooms",
        "--env Unlock --simulator-python x": "--simulator-python is for scenes",
        "--env Unlock --up z": "--up is for scenes of rooms",
    },
    sweep: {
        "--grid method": "setting=value,value",
        "--grid method=cbet,": "setting=value,value",
        "--grid method=cbet method=count": "names method twice",
        "--grid method=cbet,cbet": "a value of method twice",
        "--grid method=cbet,cuont": "method=cuont: unknown method",
        "--grid first_seed=0,1 first-seed=2,3": "names first-seed twice",
        "--seeds=2 --grid seeds=1,2": "--seeds is both in the grid and beside it",
        "--first-seed 2 --grid first_seed=1,2": "--first_seed is both in the grid",
        "--counts.no-shared --grid counts.shared=true": "--counts.shared is both in",
        "--preset smoke --grid unroll=8,8e0": "unroll=8 and unroll=8e0 are one run",
        f"--grid {' '.join(f'{x}=1,2,3,4,5,6,7,8,9,10' for x in 'abcde')}": "grid has 100,000 runs",
        "--grid": "--grid names nothing",
        "--grid out=a,b": "a sweep says --out itself",
        "--grid chunk=0": "chunk must be at least 1, not 0",
        "--grid seeds=-1,2": "seeds must be at least 1, not -1",
        "--command pretrian": "pretrain, tabula_rasa, transfer, habitat",
        "--slurm partition=gpu": "--cluster slurm",
        "--cluster slurm --slurm gpu": "NAME=VALUE",
        "--parallel 0": "parallel must be at least 1",
    },
    chainworld: {
        "--method rnd": "rewards of counts only: cbet, count",
        "--steps 1": "steps must be at least 2",
        "--reset-probabilities 0.1 1.5": "at most 1",
        "--discount 1": "discount",
    },
    reward_maps: {
        "--actions pick-up": "pickup",
        "--actions": "--actions names nothing",
        "--facing south": "right, down",
        "--checkpoint 100": "--from RUN",
        "--seed-index 3": "--seed-index needs --from RUN",
        "--from nowhere": "holds no run",
    },
    benchmark: {
        "--groups speed": "unknown group",
        "--presets lptop": "laptop",
        "--envs DoorKey-8x9": "square",
        "--rounds 0": "rounds",
    },
    new_method: {
        "my-bonus": "a name of Python",
        "class": "a name of Python",
        "jax": "no module of Python's, as 'jax' is",
        "__main__": "no module of Python's, as '__main__' is",
        "bonus --out bonus": "must end in .py",
    },
}
CASES = [(command, *case) for command, lines in REFUSED.items() for case in lines.items()]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> str:
    return str(pretrained(tmp_path_factory.mktemp("run")).root)


@pytest.mark.parametrize(
    ("command", "words", "said"), CASES, ids=[f"{c.__name__}: {words}" for c, words, _ in CASES]
)
def test_bad_command_lines_are_refused(command, words, said, run, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(habitat.PYTHON, raising=False)
    monkeypatch.setenv("SUBMITIT_LOG_LEVEL", "NOCONFIG")  # or it takes pytest's handlers away
    (tmp_path / "here.gif").write_text("mine")
    assert said in refused(command.main, shlex.split(words.replace("RUN", run)), capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["here.gif"]
    assert (tmp_path / "here.gif").read_text() == "mine"
