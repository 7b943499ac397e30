"""Learners of other packages in our worlds: `python -m experiments.examples.NAME`."""
