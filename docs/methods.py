"""The site's page of each method: from docstrings, the settings that it reads, and tables."""

import inspect
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import griffe
import jax
import jax.numpy as jnp
from field_comments import FieldComments

from cbet_jax import config
from cbet_jax.analysis import method_style
from cbet_jax.intrinsic import METHODS, count_based, inverse_forward, make_intrinsic
from cbet_jax.other_learners.bonus import Batch, bonus
from cbet_jax.runs import metrics

PREFIX = {config.CountSettings: "counts.", config.AuxiliarySettings: "auxiliary."}
PREFIX[config.LossSettings] = "loss."
SHARED = {config.CountSettings: count_based, config.AuxiliarySettings: inverse_forward}
TOPICS = {config.CountSettings: ("count", "100-step"), config.AuxiliarySettings: ("own networks",)}
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z|])")


def modules() -> dict[str, list[str]]:
    """Return the names of the methods of each module."""
    found: dict[str, list[str]] = {}
    for name, make in METHODS.items():
        found.setdefault(getattr(make, "func", make).__module__, []).append(name)
    return found


def pages(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page; `texts` are the repository's own pages."""
    _, *algorithm = texts["cbet_jax/README.md"].split("\n## ")
    formulas, differences = (
        next(text for text in algorithm if text.startswith(heading))
        for heading in ("Methods", "Where ours differ")
    )
    results = texts["experiments/study/RESULTS.md"].replace("](../", "](../experiments/")
    results += texts["experiments/exploration.md"].replace("](results", "](../experiments/results")
    for module, names in modules().items():
        first, _, about = (inspect.getdoc(import_module(module)) or "").partition("\n")
        title, named = first.split(":")[0].split(" (")[0], [f"`{name}`" for name in names]
        read, logged = traced(names)
        topics = [*named, *(word for group in read for word in TOPICS.get(group, ()))]
        makers = {getattr(METHODS[name], "func", METHODS[name]): None for name in names}
        parts = [f"# {title}", first, about, rows(formulas, named)]
        parts += ["## Settings", table(("setting", "default", "meaning"), list(described(read)))]
        parts += ["## Metrics", table(("metric", "meaning", "unit"), logged), "## Details"]
        parts += [numbered([*makers, *(SHARED[group] for group in read if group in SHARED)])]
        parts += [rows(differences, topics)]
        titles = [title, *map(method_style.title, names)]
        for text in results.split("\n## ")[1:]:
            if shown := rows(text, titles):
                parts += [f"## {text.splitlines()[0]}", shown]
                parts += re.findall(r"^!\[.+\)$", text, re.MULTILINE)
        parts += ["## Code", f"::: {module}\n    options: {{heading_level: 3, show_source: true}}"]
        yield f"methods/{module.rpartition('.')[2]}.md", "\n\n".join(parts) + "\n"


def rows(text: str, words: Sequence[str]) -> str:
    """Return the rows of the first table in a text whose first cell has one of the words."""
    header, line, *body = [*re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE), "\n\n"][0].splitlines()
    kept = [row for row in body if any(word in row.split("|")[1] for word in words)]
    return "\n".join([header, line, *kept]) if kept else ""


def table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    return "\n".join(f"| {' | '.join(c)} |" for c in (header, ["---"] * len(header), *body))


def traced(names: Sequence[str]) -> tuple[dict[type, list[str]], list[Sequence[str]]]:
    """Return the settings that methods read when they are traced, and the metrics they give."""
    read: dict[type, list[str]] = {}
    given = dict.fromkeys((*metrics.MAIN[:3], "entropy"))

    def reading(group: Any, name: str) -> Any:
        if name in type(group).__dataclass_fields__:
            read.setdefault(type(group), []).append(name)
        return object.__getattribute__(group, name)

    settings, key = config.TrainSettings(), jax.random.key(0)
    view, action = jnp.zeros((2, 7, 7, 3), jnp.uint8), jnp.zeros(2, jnp.int32)
    step = view, action, view, action > 0
    with ExitStack() as patched:
        for group in PREFIX:
            patched.enter_context(patch.object(group, "__getattribute__", reading))
        for name in names:
            own = make_intrinsic(replace(settings, method=name), 7)
            made = bonus(name, 2, (7, 7, 3), 7, settings=settings)
            state = jax.eval_shape(made.init, key, view)
            jax.eval_shape(made.step, state, key, *step)
            batch = Batch(*(leaf[None] for leaf in step))
            given |= jax.eval_shape(made.update, state, batch)[1] if state.params.learnt else {}
            given |= jax.eval_shape(own.metrics, state.memory)
    known = [metrics.of(name) for name in given if name in metrics.BY_NAME]
    return read, [(f"`{metric.name}`", metric.title, metric.unit) for metric in known]


def described(read: dict[type, list[str]]) -> Iterator[Sequence[str]]:
    """Yield names, defaults and comments of settings."""
    path, commented = Path(config.__file__), griffe.load_extensions(FieldComments)
    code = griffe.visit(config.__name__, path, path.read_text(), extensions=commented)
    for group, names in {config.TrainSettings: ["intrinsic_coefficient"], **read}.items():
        for field in (code[group.__name__][name] for name in dict.fromkeys(names)):
            option = f"--{PREFIX.get(group, '')}{field.name}".replace("_", "-")
            yield (
                f"`{option}`",
                f"`{field.value}`",
                field.docstring.value if field.docstring else "",
            )


def numbered(documented: Sequence[Any]) -> str:
    """Return the sentences of docstrings as a numbered list."""
    texts = [(inspect.getdoc(each) or "").partition("\nRaises:")[0] for each in documented]
    said = [" ".join(line.split()) for text in texts for line in SENTENCE.split(text)]
    said = [line for line in said if ":" in line or not line.startswith("Return ")]
    return "\n".join(f"{number}. {line}" for number, line in enumerate(said, 1))
