"""Keep compiled programs in the user's cache folder, so a resumed run need not compile again."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path

import jax
from jax.experimental.compilation_cache.compilation_cache import reset_cache


def use(say: Callable[[str], None]) -> None:
    """Let JAX keep compiled programs (machine code) in a folder that only the user can write."""
    if jax.config.jax_compilation_cache_dir or not jax.config.jax_enable_compilation_cache:
        return
    if jax.__version_info__ < (0, 11):  # on a CPU 0.6.0 reads back programs that compute nonsense
        return
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = (caches / "cbet-jax" / f"jax-{jax.__version__}").absolute()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.geteuid() or folder.stat().st_mode & 0o022:
            raise OSError(f"others can write to {folder}, and their programs would be run")
    except (OSError, RuntimeError) as error:  # RuntimeError: a user without a home
        return say(f"compiled programs are not kept: {error}")
    warnings.filterwarnings("ignore", "Error writing persistent compilation cache")  # a full disk
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")  # no folder of XLA's own
    reset_cache()  # without this JAX keeps using the folder it began with
