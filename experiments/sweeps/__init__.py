"""Grids of settings over a training command, here or on a SLURM cluster."""
