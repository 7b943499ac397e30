"""A campaign of faults from outside the program: `python -m tests.torture`."""
