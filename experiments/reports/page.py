"""Write a page of HTML as one file, with its style, pictures and scripts inside.

Charts show their values under the pointer; a click on a table's head sorts by that column.
"""

import base64
import html
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cbet_jax.runs.atomic_write import creating, open_text, replacing
from cbet_jax.runs.reading import read_bytes

HERE = Path(__file__).parent
MEDIA = {".png": "image/png", ".gif": "image/gif"}
SHORT = 40  # letters; a table breaks no lines if all its cells are shorter
PICTURE = re.compile(r'<img src="([^"]+)"')


def write(path: Path, title: str, body: str, *, again: bool = False) -> Path:
    """Write a page; a process that dies leaves the whole page or none.

    Args:
        path: the file; only `again` replaces an existing one (else: FileExistsError).
        title: title of the browser's tab.
        body: HTML; paths of pictures are relative to the file's folder.
        again: whether the file may exist.
    """
    needed = [name for mark, name in SCRIPTS.items() if mark in body]
    scripts = [f"<script>\n{_ours(name)}</script>" for name in needed]
    text = "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{html.escape(title)}</title>",
            f"<style>\n{_ours('page.css')}</style></head>",
            f"<body><main>\n{PICTURE.sub(lambda m: _inside(m, path.parent), body)}\n</main>",
            *scripts,
            "</body></html>\n",
        ]
    )
    with (replacing if again else creating)(path) as temporary, open_text(temporary) as file:
        file.write(text)
    return path


def _ours(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def heading(text: str, level: int = 2) -> str:
    """Return a heading."""
    return f"<h{level}>{html.escape(text)}</h{level}>"


def paragraph(text: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{html.escape(text)}</p>"


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table of plain text, which scrolls where it is too wide."""

    def line(cells: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"

    rows = [[str(cell) for cell in row] for row in rows]
    kind = "short" if all(len(cell) < SHORT for row in rows for cell in row) else "long"
    body = "".join(line(row, "td") for row in rows)
    return (
        f'<div class="wide"><table class="{kind}"><thead>{line(header, "th")}</thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def picture(path: str, caption: str) -> str:
    """Return a picture with its caption."""
    text = html.escape(caption)
    image = f'<img src="{html.escape(path)}" alt="{text}">'
    return f"<figure>{image}<figcaption>{text}</figcaption></figure>"


def details(summary: str, body: str) -> str:
    """Return HTML that a click on the summary shows."""
    return f"<details><summary>{html.escape(summary)}</summary>{body}</details>"


CHART = '<script type="application/json" class="chart">'
SCRIPTS = {CHART: "charts.js", "<table": "tables.js"}  # mark in a page -> script that it needs


def chart(title: str, horizontal: str, vertical: str, lines: Sequence[dict[str, Any]]) -> str:
    """Return a chart that shows its values under the pointer.

    Args:
        title: title of the chart.
        horizontal: label of the horizontal axis.
        vertical: label of the vertical axis.
        lines: records with `name`, `color`, and the lists `x`, `y`, `low` and `high`.
    """
    content = {"title": title, "horizontal": horizontal, "vertical": vertical, "lines": lines}
    data = json.dumps(content).replace("</", "<\\/")
    return f"<figure>{CHART}{data}</script></figure>"


def _inside(found: re.Match[str], folder: Path) -> str:
    """Return the start of an image tag, with the file's content in place of its path."""
    path = folder / html.unescape(found[1])
    data = base64.b64encode(read_bytes(path)).decode()
    return f'<img src="data:{MEDIA[path.suffix]};base64,{data}"'
