"""The release: it is built without a warning, and the wheel runs in an empty directory."""

import re
import shutil
import subprocess
import tarfile

import nbformat
import pytest

from tests.support.fresh_environment import ROOT, environment, output

pytestmark = pytest.mark.slow  # fresh environments
MOST_BYTES = 2**20  # of a file of the source distribution


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the distributions of what git knows."""
    folder = tmp_path_factory.mktemp("release")
    known = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in known.stdout.decode().rstrip("\0").split("\0"):
        copy = folder / "source" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    programs = environment(folder, "3.12", "build")
    said = output(programs / "python", "-m", "build", "source", "--outdir", folder, folder=folder)
    assert not re.findall(r"(?i).*warn.*", said)
    return folder


def test_the_source_holds_the_packages_only(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        files = {file.name.partition("/")[2]: file.size for file in archive}
    assert max(files.values()) < MOST_BYTES
    assert {"README.md", "cbet_jax/py.typed", "envs/habitat/apartments/study.glb"} <= files.keys()
    assert not [name for name in files if name.startswith(("tests/", "experiments/results"))]


def test_the_wheel_runs_in_an_empty_directory(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    programs = environment(tmp_path, "3.12", wheel)
    empty = tmp_path / "empty"
    empty.mkdir()
    cbet = programs / "cbet"
    film = "watch", "pretrained/cbet-multienv", "--env", "Unlock", "--out", "film.gif"
    output(cbet, *film, folder=empty)
    output(cbet, "pretrain", "--preset", "smoke", "--out", "run", folder=empty)
    output(cbet, "report", "run", "--out", "report.html", folder=empty)
    assert (empty / "film.gif").read_bytes().startswith(b"GIF8")
    assert "interactions" in (empty / "report.html").read_text()
    names = "from cbet_jax import *; from envs import *; print(IntrinsicReward, check_world)"
    assert "IntrinsicReward" in output(programs / "python", "-c", names, folder=empty)


def test_the_first_cell_of_the_notebook_installs_the_wheel(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    programs = environment(tmp_path, "3.12", "ipykernel", "nbclient", "pip")
    shutil.copy(wheel, tmp_path)
    notebook = nbformat.read(ROOT / "experiments" / "notebooks" / "quickstart.ipynb", as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    notebook.cells = [first, nbformat.v4.new_code_cell("import cbet_jax, envs.minigrid")]
    nbformat.write(notebook, tmp_path / "first.ipynb")
    output(programs / "jupyter-execute", "first.ipynb", "--timeout=1200", folder=tmp_path)
    known = output(programs / "python", "-m", "pip", "show", "cbet-jax", folder=tmp_path)
    assert "Version: 0.2.0" in known
