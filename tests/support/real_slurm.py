"""A SLURM of this machine: two nodes of one core, from the packages slurm-wlm and munge.

Its partition `high` preempts jobs of `low`, which the cluster puts into its queue again by itself.
Accounts need slurmdbd and mariadb-server, too.
"""

import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

IS_INSTALLED = all(map(shutil.which, ("slurmctld", "slurmd", "munged")))
HAS_DATABASE = all(map(shutil.which, ("slurmdbd", "mariadbd", "mariadb-install-db")))
CONFIGURATION = """\
ClusterName=small
SlurmctldHost=localhost
SlurmctldPort={ports[0]}
SlurmUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/linear
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=one NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1
NodeName=two NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1
PartitionName=low Nodes=one,two Default=YES PriorityTier=1
PartitionName=high Nodes=one,two PriorityTier=2
"""
ACCOUNTS = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={ports[3]}
AccountingStoragePass={folder}/munge.socket
"""
DATABASE = """\
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdPort={ports[3]}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports[4]}
StorageUser=root
PidFile={folder}/slurmdbd.pid
"""


@contextmanager
def real_slurm(*, accounts: bool) -> Iterator[None]:
    """Start a cluster, and end it. Jobs, and the programs of SLURM, find it by the environment."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder, ports = Path(name), _free_ports(5)

        def write(file: str, text: str) -> Path:
            path = folder / file
            path.write_text(text.format(folder=folder, ports=ports))
            path.chmod(0o600)
            return path

        def start(*words: str) -> None:
            stack.enter_context(_started(folder, words))

        (folder / "state").mkdir()
        configuration = write("slurm.conf", CONFIGURATION + (ACCOUNTS if accounts else ""))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("SLURM_CONF", str(configuration))
        write("munge.key-file", uuid.uuid4().hex)
        files = ("key-file", "socket", "pid-file", "log-file", "seed-file")
        places = (f"--{file}={folder}/munge.{file}" for file in files)
        start("munged", "--foreground", "--force", *places)
        wait_for((folder / "munge.socket").exists)
        if accounts:
            write("slurmdbd.conf", DATABASE)
            _start_database(folder / "data", ports[4], start)
            start("slurmdbd", "-D")
            wait_for(lambda: "small" in answer("sacctmgr", "-i", "add", "cluster", "small"))
        start("slurmctld", "-D")
        for node in ("one", "two"):
            start("slurmd", "-D", "-N", node)
        wait_for(lambda: answer("sinfo", "--noheader", "--format=%T %D") == "idle 2\n")
        yield
        answer("scancel", "--user=root")
        wait_for(lambda: not answer("squeue", "--noheader"))


def _start_database(folder: Path, port: int, start: Callable[..., None]) -> None:
    options = (f"--datadir={folder}", "--user=root")
    install = ("mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal")
    subprocess.run((*install, *options), check=True, capture_output=True)
    files = (f"--{file}={folder}/mariadb.{file}" for file in ("socket", "pid-file"))
    address = ("--bind-address=127.0.0.1", f"--port={port}")
    start("mariadbd", "--no-defaults", *options, *files, *address)
    wait_for((folder / "mariadb.socket").exists)


def answer(*words: str) -> str:
    """Return what a command prints."""
    return subprocess.run(words, capture_output=True, text=True).stdout


def wait_for(is_there: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something is there.

    Raises:
        TimeoutError: it is not, after so many seconds.
    """
    end = time.monotonic() + seconds
    while not is_there():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.1)


@contextmanager
def _started(folder: Path, words: tuple[str, ...]) -> Iterator[None]:
    with open(folder / f"{words[0]}.out", "a") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
