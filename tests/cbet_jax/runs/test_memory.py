"""How much memory there is, as files of the system tell it."""

import os

import jax
import jax.numpy as jnp
import pytest

from cbet_jax.config import SettingsError
from cbet_jax.runs import memory
from experiments import minigrid_pretrain
from tests.support.refusal import refused

PAGE = os.sysconf("SC_PAGE_SIZE")
THERE = {  # files of the system, and the bytes that are free
    "the least limit of all groups above": (
        {
            "proc/self/cgroup": "0::/slice/job",
            "sys/fs/cgroup/slice/job/memory.max": "max",
            "sys/fs/cgroup/slice/memory.max": 900 * 2**20,
            "sys/fs/cgroup/memory.max": 5 * 2**30,
        },
        900 * 2**20,
    ),
    "limits of the older kind, as in a container": (
        {
            "proc/self/cgroup": "9:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n0::/",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": 700 * 2**20,
            "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": 2**63 - 4096,
        },
        700 * 2**20,
    ),
    **{
        f"less the {held} bytes that the process holds": (
            {
                "proc/self/cgroup": "0::/",
                "sys/fs/cgroup/memory.max": 900 * 2**20,
                "proc/self/statm": f"9999 {held // PAGE} 0",
            },
            free,
        )
        for held, free in {100 * 2**20: 800 * 2**20, 2**40: 0}.items()
    },
    "what other processes leave, to this one, too": (
        {
            "proc/meminfo": "MemTotal: 99999999 kB\nMemFree: 5 kB\nMemAvailable: 700 kB",
            "proc/self/statm": f"9999 {100 * 2**10 // PAGE} 0",
        },
        700 * 2**10,
    ),
    "no such files": ({}, 2**60),
}


@pytest.mark.parametrize("what", THERE)
def test_files_of_the_system_tell_what_is_free(what, tmp_path):
    texts, free = THERE[what]
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{text}\n")
    assert memory.available(1, tmp_path) == free
    assert 0 < memory.available(1) < 2**50


def test_a_program_is_refused_by_its_own_plan(monkeypatch):
    compiled = jax.jit(lambda x: (x @ x.T).sum()).lower(jnp.ones((300, 200))).compile()
    monkeypatch.setattr(memory, "available", lambda devices: 300 * 200)
    with pytest.raises(SettingsError, match="training takes"):
        memory.refuse_program(compiled)
    monkeypatch.setattr(memory, "available", lambda devices: 10**7)
    memory.refuse_program(compiled)


def test_a_container_that_is_too_small_is_told_of_before_compiling(tmp_path, capsys, monkeypatch):
    """It would kill the process without a word."""
    monkeypatch.setattr(memory, "available", lambda devices: 900 * 2**20)
    words = ["--preset", "smoke", "--out", str(tmp_path / "run")]
    error = refused(minigrid_pretrain.main, words, capsys)
    assert error.startswith("error: compiling and training take at least 0.9 GiB")
    assert not (tmp_path / "run").exists()
