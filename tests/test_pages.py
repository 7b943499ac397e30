"""The pages: their commands parse, their Python imports what there is, their links lead somewhere.

Commands are parsed by the modules that they name, and are not run. A block that cannot be parsed
has `<!-- not run: reason -->` before it.
"""

import ast
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from cbet_jax.runs.directory import RunDirectory
from experiments.common import cli, opening
from experiments.common import commands as commands_by_name
from experiments.common.presets import PRESETS

ROOT = Path(__file__).parent.parent
LISTED = subprocess.run(
    ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False
).stdout.split()
PAGES = [Path(name) for name in LISTED] or [
    path.relative_to(ROOT) for top in (".", "*", "*/*") for path in ROOT.glob(f"{top}/*.md")
]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
FRONT_LINES, FRONT_COLUMNS, PAGE_LINES = 130, 110, 200


class ParsedError(BaseException):
    """Ends a command that has been parsed; no command catches it."""


def text(page: Path) -> str:
    return (ROOT / page).read_text()


def blocks(page: Path, language: str) -> Iterator[str]:
    """Yield the fenced blocks of a language, without those that are marked as not run."""
    fence = re.compile(r"(<!-- not run: .+ -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    for marked, found, code in fence.findall(text(page)):
        if found == language and not marked:
            yield code


def commands(page: Path) -> list[str]:
    lines = (line for block in blocks(page, "bash") for line in block.splitlines() if line)
    return [command for line in lines for command in line.split(" && ")]


def run_by_uv(command: str) -> list[str] | None:
    """Return the words behind `uv run` and its options, None for other commands."""
    words = shlex.split(command)
    if words[:2] not in (["uv", "run"], [".uv/bin/uv", "run"]):
        return None
    words = words[2:]
    while words[0] in ("--extra", "--with"):
        assert words[0] == "--with" or words[1] in EXTRAS, f"no extra: {command}"
        words = words[2:]
    return words


@pytest.fixture
def parsing_only(monkeypatch, tmp_path):
    """Commands end when their line is parsed; runs that they name have the default settings."""
    parse = cli.parse

    def parse_only(kind, arguments, *rest, **options):
        parsed = parse(kind, arguments, *rest, **options)
        if "return_unknown_args" in options:
            return parsed  # the words that say where defaults come from, or those of a sweep
        raise ParsedError

    monkeypatch.setattr(cli, "parse", parse_only)
    monkeypatch.setattr(opening, "stored_settings", lambda said: None)
    monkeypatch.setattr(RunDirectory, "settings", lambda directory: PRESETS["paper"])
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_are_parsed(page, parsing_only):
    for command in commands(page):
        words = run_by_uv(command)
        if words and words[0] == commands_by_name.PROGRAM:
            if len(words) == 1 or words[1].startswith("-"):
                continue
            module, *arguments = commands_by_name.module_of(words[1]), *words[2:]
            assert module, f"no such command: {command}"
        elif words is None or words[:2] != ["python", "-m"]:
            continue
        else:
            module, *arguments = words[2:]
        if not module.startswith("experiments."):
            assert (ROOT / module.replace(".", "/")).exists(), command
            continue
        try:
            import_module(module).main(arguments)
        except ParsedError:
            continue
        except SystemExit as refused:
            pytest.fail(f"{command}: exit status {refused.code}")
        pytest.fail(f"{command}: it was not parsed")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_blocks_are_shell_that_starts_programs_through_uv(page):
    for block in blocks(page, "bash"):
        subprocess.run(["bash", "-n"], input=block, text=True, check=True)
    for command in commands(page):
        words = run_by_uv(command)
        assert shlex.split(command)[0] not in ("python", "pytest"), command
        if words and words[0] == "pytest":
            paths = [word for word in words[1:] if "/" in word]
            assert all((ROOT / path).exists() for path in paths), command


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_python_compiles_and_imports_what_there_is(page):
    for code in blocks(page, "python"):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module:
                module = import_module(node.module)
                for name in node.names:
                    if not hasattr(module, name.name):
                        import_module(f"{node.module}.{name.name}")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page):
    prose = re.sub(r"^```.*?^```$", "", text(page), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", prose):
        if not target.startswith(("http://", "https://")):
            assert (ROOT / page.parent / target).exists(), f"{page}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_pages_are_short(page):
    lines = text(page).splitlines()
    front = page == Path("README.md")
    assert len(lines) <= (FRONT_LINES if front else PAGE_LINES)
    if front:
        assert max(map(len, lines)) <= FRONT_COLUMNS


def test_the_test_command_stands_on_a_line():
    assert ".uv/bin/uv run --extra dev pytest" in commands(Path("README.md"))
