"""Two devices average a number, one of them so many seconds later than the other."""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from cbet_jax.runs.devices import use_cpu
from cbet_jax.sharding import WORLDS


def main(seconds: float) -> None:
    use_cpu(2)
    mesh = Mesh(np.array(jax.devices()), (WORLDS,))

    def wait(device: np.ndarray) -> np.ndarray:
        time.sleep(seconds * int(device))
        return np.float32(device)

    def average() -> jax.Array:
        device = jax.lax.axis_index(WORLDS)
        late = jax.pure_callback(wait, jax.ShapeDtypeStruct((), jnp.float32), device)
        return jax.lax.pmean(late, WORLDS)

    program = jax.shard_map(average, mesh=mesh, in_specs=(), out_specs=P(), check_vma=False)
    assert jax.jit(program)() == 0.5


if __name__ == "__main__":
    main(float(sys.argv[1]))
