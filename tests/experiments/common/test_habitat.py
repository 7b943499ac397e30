"""Runs in Habitat that come from somebody else."""

from dataclasses import replace

import pytest

from cbet_jax.config import HabitatSettings, SettingsError
from cbet_jax.runs.directory import RunDirectory
from experiments import habitat_evaluate, habitat_pretrain, watch
from experiments.common import habitat
from experiments.common.presets import HABITAT_PRESETS
from tests.support.refusal import refused


@pytest.mark.parametrize("command", ["evaluate", "watch", "resume"])
def test_a_run_names_no_code_by_itself(command, tmp_path, capsys):
    code, mark = tmp_path / "code.py", tmp_path / "was_run"
    code.write_text(f"open({str(mark)!r}, 'w')\n")
    run = RunDirectory(tmp_path / "downloaded")
    smoke = HABITAT_PRESETS["smoke"]
    run.create(replace(smoke, habitat=HabitatSettings(simulator=str(code))))
    main, arguments = {
        "evaluate": (habitat_evaluate.main, [str(run.root), "--scenes", "x"]),
        "watch": (watch.main, [str(run.root)]),
        "resume": (habitat_pretrain.main, ["--out", str(run.root), "--resume"]),
    }[command]
    error = refused(main, arguments, capsys)
    assert f"add --simulator {code}" in error
    assert not mark.exists()


def test_the_command_line_may_name_code():
    stored = HabitatSettings(simulator="./mine.py")
    assert habitat.trusted(stored, "./mine.py") == stored
    assert habitat.trusted(stored, "/its/place.py").simulator == "/its/place.py"
    assert habitat.trusted(HabitatSettings(), None) == HabitatSettings()
    with pytest.raises(SettingsError, match="code"):
        habitat.trusted(stored, None)


@pytest.mark.parametrize("way", ["random_starts", "shared_start"])
def test_scenes_are_played_as_the_settings_say(way, monkeypatch):
    asked = []
    make = lambda played, **options: asked.append(options)  # noqa: E731
    monkeypatch.setattr("envs.habitat.world.habitat_world", make)
    usual = {"max_steps": 7, "random_starts": False, "shared_start": False}
    for options in (usual, usual | {way: True}):
        habitat.worlds(HabitatSettings(**options), None)
        assert asked.pop() == options


def test_simulators_start_as_the_settings_say():
    fields = {"agent_radius": 0.2, "agent_height": 1.2, "up": "y", "folder": "scenes"}
    started = habitat.process_settings("own.glb", HabitatSettings(**fields), None)
    assert (started.agent.radius, started.agent.height) == (0.2, 1.2)
    assert (started.scene, started.up, str(started.folder)) == ("own.glb", "y", "scenes")
