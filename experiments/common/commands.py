"""The commands by their short names, in the order in which a newcomer meets them."""

import ast
from importlib.util import find_spec
from pathlib import Path

PROGRAM = "cbet"  # the console script

GROUPS: dict[str, dict[str, str]] = {  # heading -> short name -> module
    "Begin here": {
        "chainworld": "experiments.chainworld",
        "watch": "experiments.watch",
        "pretrain": "experiments.minigrid_pretrain",
        "evaluate": "experiments.minigrid_evaluate",
        "report": "experiments.report",
    },
    "Learn tasks, in gridworlds and in rooms": {
        "transfer": "experiments.minigrid_transfer",
        "tabula-rasa": "experiments.minigrid_tabula_rasa",
        "habitat-pretrain": "experiments.habitat_pretrain",
        "habitat-evaluate": "experiments.habitat_evaluate",
    },
    "Many runs": {
        "sweep": "experiments.sweep",
        "paper": "experiments.paper",
        "ablation": "experiments.minigrid_ablation",
        "noisy-tv": "experiments.noisy_tv",
    },
    "Rewards and worlds of your own": {
        "new-method": "experiments.new_method",
        "check-method": "experiments.check_method",
        "check-world": "experiments.check_world",
    },
    "Look closer": {
        "compare": "experiments.compare",
        "reward-maps": "experiments.reward_maps",
        "import-torch": "experiments.import_torch",
        "doctor": "experiments.doctor",
        "benchmark": "experiments.benchmark",
    },
}
MODULES = {name: module for group in GROUPS.values() for name, module in group.items()}
SHORT = {module: name for name, module in MODULES.items()}


def module_of(word: str) -> str | None:
    """Return the module of a command by its short name or its file's name, None for no command."""
    long = f"experiments.{word.replace('-', '_')}"
    return MODULES.get(word.replace("_", "-")) or (long if long in SHORT else None)


def summary(module: str) -> str:
    """Return the first line of a module's docstring, without the command line at its end.

    The module is read, not imported: that would take seconds.
    """
    found = find_spec(module)
    assert found is not None
    assert found.origin is not None
    source = Path(found.origin).read_text()
    line = (ast.get_docstring(ast.parse(source)) or "").split("\n", 1)[0]
    return line.split(": `python", 1)[0].rstrip(".")
