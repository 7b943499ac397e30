"""The report on a GPU on disk: all numbers, and a table of them."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
from rich.console import Console

from cbet_jax.runs import manifest
from cbet_jax.runs.atomic_write import check_room, replacing, write_json
from cbet_jax.runs.directory import RunDirectoryError
from experiments.benchmarks import gpu_report_table

REPORT, TABLE, TRACE = "report.json", "report.md", "trace.json.gz"


class Report:
    """The report's content, and its files."""

    def __init__(self, folder: Path, arguments: Sequence[str], console: Console) -> None:
        """Begin a report.

        Args:
            folder: to write to.
            arguments: of the command line.
            console: to print to.

        Raises:
            RunDirectoryError: there is one already. OSError: the folder cannot be written to.
        """
        self.folder, self._console = folder, console
        for name in (REPORT, TABLE, TRACE):
            if os.path.lexists(folder / name):
                raise RunDirectoryError(f"{folder} already holds a {name}: choose another folder")
        device = jax.devices()[0]
        self.content: dict[str, Any] = {
            "device": device.device_kind,
            "is_gpu": device.platform == "gpu",
            "device_memory": (device.memory_stats() or {}).get("bytes_limit"),
            "machine": manifest.describe(arguments),
            "compiled_programs_kept_in": jax.config.jax_compilation_cache_dir,
            "seconds": 0.0,
            "finished": False,
            "agreement": {},
            "cases": [],
        }
        self._began = time.monotonic()
        check_room(folder)
        self.save()

    @property
    def seconds(self) -> float:
        """How long the report has taken so far."""
        return time.monotonic() - self._began

    def save(self) -> None:
        """Write the numbers and the table."""
        self.content["seconds"] = round(self.seconds, 1)
        write_json(self.folder / REPORT, self.content)
        with replacing(self.folder / TABLE) as temporary:
            temporary.write_text(gpu_report_table.markdown(self.content))

    def say(self, line: str) -> None:
        """Print one line, with the time."""
        self._console.print(f"{self.seconds:5.0f} s  {line}", soft_wrap=True, highlight=False)
