"""What `--help` and `--help-all` print."""

import pytest

from experiments import compare, minigrid_pretrain, minigrid_transfer, watch


def helped(main, capsys, monkeypatch, *words: str) -> list[str]:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as stop:
        main([*words])
    assert stop.value.code == 0
    return capsys.readouterr().out.splitlines()


def options(lines: list[str]) -> list[str]:
    return [line.split()[0].rstrip(",") for line in lines if line.startswith("  -")]


@pytest.mark.parametrize("main", [minigrid_pretrain.main, minigrid_transfer.main, watch.main])
def test_ten_options_are_common_and_the_rest_follows_on_request(main, capsys, monkeypatch):
    short = helped(main, capsys, monkeypatch, "--help")
    assert len(options(short)) == 10
    assert short[-1].endswith("--help-all lists the others.")
    assert len(short) < 45
    everything = helped(main, capsys, monkeypatch, "--help-all")
    assert set(options(short)) < set(options(everything))


def test_all_options_come_with_their_choices_and_without_noise(capsys, monkeypatch):
    lines = helped(minigrid_pretrain.main, capsys, monkeypatch, "--help-all")
    text = "\n".join(lines)
    assert max(map(len, lines)) <= 80
    for noise in ("(default: None)", "{None}", "--no-resume", "│"):
        assert noise not in text
    assert "--preset {paper,laptop,smoke}" in text
    assert "{cbet, count, rnd," in text
    assert "--counts.states {egocentric,panoramic}" in text
    assert "network options:" in lines
    assert "--optimizer.learning-rate" in options(lines)


def test_a_command_with_few_options_shows_all(capsys, monkeypatch):
    lines = helped(compare.main, capsys, monkeypatch, "--help")
    assert "[NAME=]RUN ..." in lines[0]
    assert options(lines) == ["--out", "--until"]
    assert "lists the others" not in lines[-1]
