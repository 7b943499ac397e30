"""The commands by their short names, in the order in which a newcomer meets them."""

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

PROGRAM = "cbet"  # the console script
AND = "--and"  # between command lines that one program does together


class Command(NamedTuple):
    """A command's module and the dataclass of its options."""

    module: str
    options: str  # NAME in the module, or MODULE:NAME


STUDY_OPTIONS = "experiments.study.options:StudyOptions"

GROUPS: dict[str, dict[str, Command]] = {  # heading -> short name -> command
    "Begin here": {
        "chainworld": Command("experiments.chainworld", "ChainworldOptions"),
        "watch": Command("experiments.watch", "WatchOptions"),
        "pretrain": Command("experiments.minigrid_pretrain", "PretrainOptions"),
        "evaluate": Command("experiments.minigrid_evaluate", "EvaluateOptions"),
        "report": Command("experiments.report", "ReportOptions"),
    },
    "Learn tasks, in gridworlds and in rooms": {
        "transfer": Command("experiments.minigrid_transfer", "TransferOptions"),
        "tabula-rasa": Command("experiments.minigrid_tabula_rasa", "TabulaRasaOptions"),
        "habitat-pretrain": Command("experiments.habitat_pretrain", "HabitatPretrainOptions"),
        "habitat-evaluate": Command("experiments.habitat_evaluate", "HabitatEvaluateOptions"),
    },
    "Many runs": {
        "sweep": Command("experiments.sweep", "experiments.sweeps.command:SweepOptions"),
        "paper": Command("experiments.paper", STUDY_OPTIONS),
        "ablation": Command("experiments.minigrid_ablation", STUDY_OPTIONS),
        "noisy-tv": Command("experiments.noisy_tv", STUDY_OPTIONS),
    },
    "Rewards and worlds of your own": {
        "new-method": Command("experiments.new_method", "NewMethodOptions"),
        "check-method": Command("experiments.check_method", "CheckMethodOptions"),
        "check-world": Command("experiments.check_world", "CheckWorldOptions"),
    },
    "Look closer": {
        "compare": Command("experiments.compare", "CompareOptions"),
        "reward-maps": Command("experiments.reward_maps", "RewardMapOptions"),
        "import-torch": Command("experiments.import_torch", "ImportOptions"),
        "doctor": Command("experiments.doctor", "DoctorOptions"),
        "benchmark": Command("experiments.benchmark", "BenchmarkOptions"),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
MODULES = {name: command.module for name, command in COMMANDS.items()}
SHORT = {module: name for name, module in MODULES.items()}


def module_of(word: str) -> str | None:
    """Return the module of a command's short name or file name, None if there is none."""
    long = f"experiments.{word.replace('-', '_')}"
    return MODULES.get(word.replace("_", "-")) or (long if long in SHORT else None)


def summary(module: str) -> str:
    """Return a command's first docstring line; importing the module would take seconds."""
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    source = Path(found.origin).read_text(encoding="utf-8")
    line = (ast.get_docstring(ast.parse(source)) or "").split("\n", 1)[0]
    return line.split(": `python", 1)[0].rstrip(".")
