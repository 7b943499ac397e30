"""A real browser without a window: Chromium, where it is installed (Debian: `chromium`)."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
DARK, LIGHT = 0, 1  # Chromium's numbers of what a user prefers
MEASURE = """<script>window.addEventListener("load", () => setTimeout(() => {
  document.body.dataset.overflow = document.documentElement.scrollWidth - window.innerWidth;
  document.body.dataset.smallest = Math.min(...[...document.querySelectorAll("main *")]
    .filter((e) => e.textContent.trim() && e.getClientRects().length)
    .map((e) => parseFloat(getComputedStyle(e).fontSize)));
}, 500));</script></body>"""


class Shown(NamedTuple):
    """A page as a browser shows it."""

    dom: str  # after its scripts have run
    console: list[str]  # what scripts and the browser complain about
    background: float  # brightness of the corner, 0 to 1
    overflow: int  # pixels that the page is wider than the window
    smallest: float  # pixels, of the smallest text


def show(page: Path, folder: Path, width: int, prefers: int = LIGHT) -> Shown:
    """Open a page.

    Args:
        page: the file.
        folder: for a copy, which measures itself, and for the browser's profile.
        width: of the window, in pixels.
        prefers: `DARK` or `LIGHT`.
    """
    assert CHROMIUM is not None
    copy = folder / "measured.html"
    copy.write_text(page.read_text().replace("</body>", MEASURE))
    picture = folder / "page.png"
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},1200"),
        *("--virtual-time-budget=4000", "--enable-logging=stderr", "--dump-dom"),
        *(f"--blink-settings=preferredColorScheme={prefers}", f"--user-data-dir={folder / 'user'}"),
        *(f"--screenshot={picture}", copy.as_uri()),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    corner = np.asarray(Image.open(picture).convert("L"))[5, 5] / 255
    found = {name: value for name, value in re.findall(r'data-(\w+)="([\d.-]+)"', ended.stdout)}
    console = [line for line in ended.stderr.splitlines() if "CONSOLE" in line]
    overflow, smallest = int(found["overflow"]), float(found["smallest"])
    return Shown(ended.stdout, console, float(corner), overflow, smallest)
