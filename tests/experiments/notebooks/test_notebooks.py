"""What holds for every notebook, without running it."""

import nbformat
import pytest

from tests.support.notebooks import FOLDER


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.ipynb")))
def test_a_notebook_is_valid_and_kept_without_outputs(name):
    notebook = nbformat.read(FOLDER / name, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    assert sum("parameters" in cell.metadata.get("tags", ()) for cell in code) == 1
