"""Damage to checkpoints."""

from pathlib import Path

from cbet_jax.runs.checkpoint import FILE


def cut(checkpoint: Path) -> None:
    """Cut the end off the arrays of a checkpoint."""
    arrays = checkpoint / FILE
    arrays.write_bytes(arrays.read_bytes()[:-100])
