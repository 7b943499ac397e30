"""How much memory there is, as files of the system tell it."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from cbet_jax.config import SettingsError
from cbet_jax.runs import memory

PAGE = os.sysconf("SC_PAGE_SIZE")


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n")


def test_the_least_limit_of_all_groups_above_counts(tmp_path):
    write(tmp_path, "proc/self/cgroup", "0::/slice/job")
    write(tmp_path, "sys/fs/cgroup/slice/job/memory.max", "max")
    write(tmp_path, "sys/fs/cgroup/slice/memory.max", 900 * 2**20)
    write(tmp_path, "sys/fs/cgroup/memory.max", 5 * 2**30)
    assert memory.available(1, tmp_path) == 900 * 2**20


def test_the_limits_of_the_older_kind_are_found(tmp_path):
    write(tmp_path, "proc/self/cgroup", "9:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n0::/")
    write(tmp_path, "sys/fs/cgroup/memory/memory.limit_in_bytes", 700 * 2**20)  # as in a container
    write(tmp_path, "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", 2**63 - 4096)
    assert memory.available(1, tmp_path) == 700 * 2**20


def test_what_the_process_holds_is_not_there(tmp_path):
    write(tmp_path, "proc/self/cgroup", "0::/")
    write(tmp_path, "sys/fs/cgroup/memory.max", 900 * 2**20)
    write(tmp_path, "proc/self/statm", f"9999 {100 * 2**20 // PAGE} 0")
    assert memory.available(1, tmp_path) == 800 * 2**20
    write(tmp_path, "proc/self/statm", f"9999 {2**40 // PAGE} 0")
    assert memory.available(1, tmp_path) == 0


def test_what_other_processes_hold_is_not_there(tmp_path):
    write(tmp_path, "proc/meminfo", "MemTotal: 99999999 kB\nMemFree: 5 kB\nMemAvailable: 700 kB")
    write(tmp_path, "proc/self/statm", f"9999 {100 * 2**10 // PAGE} 0")
    assert memory.available(1, tmp_path) == 700 * 2**10  # which is what is left to this one, too


def test_no_such_files_stop_nothing(tmp_path):
    assert memory.available(1, tmp_path) == 2**60
    assert 0 < memory.available(1) < 2**50


def test_a_program_is_refused_by_its_own_plan(monkeypatch):
    compiled = jax.jit(lambda x: (x @ x.T).sum()).lower(jnp.ones((300, 200))).compile()
    monkeypatch.setattr(memory, "available", lambda devices: 300 * 200)
    with pytest.raises(SettingsError, match="training takes"):
        memory.refuse_program(compiled)
    monkeypatch.setattr(memory, "available", lambda devices: 10**7)
    memory.refuse_program(compiled)


LIMITED = """
import sys
from cbet_jax.runs import memory
memory.available = lambda devices: 900 * 2**20
from experiments import minigrid_pretrain
minigrid_pretrain.main(["--preset", "smoke", "--out", sys.argv[1]])
"""


def test_a_container_that_is_too_small_is_told_of_before_compiling(tmp_path):
    """It would kill the process without a word."""
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: compiling and training take at least 0.9 GiB")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()
