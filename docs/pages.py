"""Hooks of mkdocs: the site's pages, from what the repository holds. No prose stands here.

Its Markdown files are pages at their places; what they link to follows them. Methods have pages of
their own (`methods.py`), and each package has one that shows its interface.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from posixpath import normpath

import methods
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import cbet_jax

ROOT = Path(__file__).parent.parent
PACKAGES = ("cbet_jax", "envs")  # whose modules the interface shows
CODE = re.compile(r"(^```.*?^```|`[^`\n]*`)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
MATH = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add all pages, and the files that they show or link to."""
    linked: set[str] = set()
    texts = {}
    for path in markdown():
        name = path.relative_to(ROOT).as_posix()
        texts[name] = rewritten(name, path.read_text(), linked)
    made = dict(methods.pages(texts))
    interface = dict(packages())
    for name in sorted(linked):
        if name.endswith(".py"):
            texts[f"{name}.md"] = f"# {name}\n\n```python\n{(ROOT / name).read_text()}```\n"
        else:
            files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for name, text in (texts | made | interface).items():
        files.append(File.generated(config, name, content=text))
    tabs = {tab: pages for section in config.nav for tab, pages in section.items()}
    tabs["Methods"] += made
    tabs["API"] += interface
    return files


def markdown() -> Iterator[Path]:
    """Yield the repository's pages."""
    yield from ROOT.glob("*.md")
    for folder in (*PACKAGES, "experiments"):
        yield from (ROOT / folder).rglob("*.md")


def rewritten(page: str, text: str, linked: set[str]) -> str:
    """Return a page with formulas as MathML, and with links that lead somewhere on the site."""

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found.group(1), found.group(2), found.group(3) or ""
        path = Path(normpath(Path(page).parent / target))
        if ":" in target or path.suffix == ".md":
            return found.group()
        if (ROOT / path / "README.md").exists():
            return f"[{words}]({target.rstrip('/')}/README.md)"
        if path.parts[0] in PACKAGES and (path.suffix == ".py" or (ROOT / path).is_dir()):
            return f"[{words}][{dotted(path)}]"
        if (ROOT / path).is_dir():
            return words
        linked.add(path.as_posix())
        return f"[{words}]({target}{'.md' if path.suffix == '.py' else ''}{anchor})"

    def formula(found: re.Match[str]) -> str:
        block, inline = found.groups()
        return convert(block or inline, display="block" if block else "inline")

    parts = CODE.split(text)
    parts[::2] = [MATH.sub(formula, LINK.sub(link, part)) for part in parts[::2]]
    return "".join(parts)


def packages() -> Iterator[tuple[str, str]]:
    """Yield the interface: a page for each package."""
    for init in sorted(path for top in PACKAGES for path in (ROOT / top).rglob("__init__.py")):
        name = dotted(init.relative_to(ROOT))
        own = [dotted(path.relative_to(ROOT)) for path in sorted(init.parent.glob("[!_]*.py"))]
        text = f"---\ntitle: {name}\n---\n\n::: {name}\n    options: {{heading_level: 1}}\n\n"
        if name == "cbet_jax":
            known = [f"[`{word}`][{cbet_jax._MODULE_OF[word]}.{word}]" for word in cbet_jax.__all__]
            text += ", ".join(known) + "\n\n"
        shown = [module for module in own if module not in methods.modules()]
        yield f"api/{name}.md", text + "".join(f"::: {module}\n\n" for module in shown)


def dotted(path: Path) -> str:
    """Return the name of a module or a package."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")
