"""The results of the studies as one page."""

import re

import pytest

from experiments import results_page
from tests.support.refusal import refused


@pytest.fixture
def written(tmp_path, capsys):
    path = tmp_path / "page" / "all.html"
    results_page.main(["--out", str(path)])
    assert f"saved: {path}" in capsys.readouterr().out
    return path


def test_the_page_needs_no_other_file(written):
    text = written.read_text()
    assert "<title>Results of the studies</title>" in text
    assert not re.findall(r'src="(?!data:image/png;base64,)', text)
    assert text.count("<img ") == results_page.SOURCE.read_text().count("![") > 5
    assert text.count("<table>") > 5
    assert "addEventListener" in text  # tables are sorted


def test_its_links_lead_to_the_same_files(written):
    links = re.findall(r'href="(?!data:|https?:|#)([^"#]+)', written.read_text())
    assert len(links) > 3
    for link in links:
        assert (written.parent / link).exists(), link


def test_a_folder_may_be_a_link(tmp_path, capsys):
    (tmp_path / "deep/er/disk").mkdir(parents=True)
    (tmp_path / "runs").symlink_to(tmp_path / "deep/er/disk")
    results_page.main(["--out", str(tmp_path / "runs" / "x.html")])
    test_its_links_lead_to_the_same_files(tmp_path / "runs" / "x.html")


def test_nothing_is_overwritten(written, capsys):
    again = ["--out", str(written)]
    assert "already exists" in refused(results_page.main, again, capsys)
    assert "must end in .html" in refused(results_page.main, ["--out", "page.txt"], capsys)


def test_a_missing_source_is_told_in_a_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(results_page, "SOURCE", tmp_path / "RESULTS.md")
    line = refused(results_page.main, ["--out", str(tmp_path / "x.html")], capsys)
    assert "part of a git clone only" in line
