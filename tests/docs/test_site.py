"""The site is built without a warning, its links lead somewhere, each method has its numbers."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from cbet_jax.intrinsic import METHODS
from tests.support.browser import CHROMIUM, show

pytestmark = pytest.mark.slow  # it takes seconds to build
ROOT = Path(__file__).parents[2]
PHONE, DESK = 390, 1280  # pixels
LOOKED_AT = ("", "methods/cbet/", "api/cbet_jax.counts/", "experiments/study/RESULTS/")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_link_leads_to_a_place_on_the_site(site):
    pages = {path: path.read_text() for path in site.rglob("*.html") if path.name != "404.html"}
    places = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    for page, text in pages.items():
        for link in re.findall(r'\b(?:href|src)="([^"]+)"', text):
            target, _, anchor = unquote(unescape(link)).partition("#")
            if target.startswith(("http:", "https:", "data:")):
                continue
            path = (page.parent / target).resolve() if target else page
            path = path / "index.html" if path.is_dir() else path
            assert path.exists(), f"{page}: {link}"
            assert not anchor or anchor in places[path] | {"__skip"}, f"{page}: {link}"


def test_no_page_asks_another_server_for_anything(site):
    asks = re.compile(r'<(?:script|img|link)\b[^>]*\b(?:src|href)="(http[^"]+)"')
    for page in site.rglob("*.html"):
        assert not asks.findall(page.read_text()), page


def test_each_method_has_a_page_with_its_numbers(site):
    text = "".join(path.read_text() for path in (site / "methods").glob("*/index.html"))
    assert all(f"<code>{name}</code>" in text for name in METHODS)
    cbet = (site / "methods" / "cbet" / "index.html").read_text()
    for words in ("1 / (N(s') + N(c))", "33.64", "--counts.reset-probability", "count_overflow"):
        assert words in cbet, words
    assert "--auxiliary" not in cbet  # settings that the method does not read
    assert cbet.count("<ol>") == 1  # the numbered details
    assert "study_frames.png" in cbet


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("page", LOOKED_AT)
def test_no_page_is_wider_than_its_window(site, page, width):
    shown = show(site / page / "index.html", site / page, width)
    assert shown.overflow <= 0
    assert not [line for line in shown.console if "search" not in line]
