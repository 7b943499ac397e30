"""Settings of the whole test run."""

import os
from pathlib import Path

# Compiled programs are kept between test processes: the same tiny training program is
# compiled once, not once in every test that starts or resumes a run.
CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))

# Nearly all of the time goes into compiling, so that it pays to optimise less.
os.environ["XLA_FLAGS"] = "--xla_backend_optimization_level=0 " + os.environ.get("XLA_FLAGS", "")
