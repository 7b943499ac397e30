"""Notebooks, executed from the first cell to the last."""

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "experiments" / "notebooks"


def executed(path: Path, parameters: str, folder: Path, monkeypatch) -> tuple[list[Any], str]:
    """Run a notebook in a folder, with other parameters.

    Returns:
        The outputs of all cells, and the text among them.
    """
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, as_version=4)
    (cell,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
    cell.source = parameters
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return shown, "".join(output.text for output in shown if output.output_type == "stream")
