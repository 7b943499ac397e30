"""What programs compute: operations and bytes, by hand."""

import jax
import jax.numpy as jnp

from experiments.benchmarks import arithmetic
from experiments.common.presets import PRESETS


def test_the_paper_networks_operations():
    """The layers added up by hand; the authors' code takes about 36 million, too."""
    convolutions = 16 * 27 * 32 + 4 * 288 * 32 + 288 * 32
    dense = 32 * 1024 + 1024 * 1024
    lstm = 2 * 4 * 1024 * 2048
    heads = 1024 * 8
    flops = arithmetic.forward_flops(PRESETS["paper"].train.network, (7, 7, 3), 7)
    assert flops == 2 * (convolutions + dense + lstm + heads)
    assert 35e6 < flops < 37e6


def test_the_bytes_of_products():
    def program(left, right, image, kernel):
        def turn(left, _):
            return left @ right, None

        turned = jax.lax.scan(turn, left, length=5)[0]
        drawn = jax.lax.conv(image, kernel, (1, 1), "VALID")
        return jax.jit(lambda: 2 * (turned @ right))(), drawn

    left, right = jnp.ones((3, 4), jnp.bfloat16), jnp.ones((4, 4), jnp.bfloat16)
    image, kernel = jnp.ones((1, 2, 5, 5)), jnp.ones((6, 2, 3, 3))
    found = arithmetic.product_bytes(program, left, right, image, kernel)
    product, convolution = 2 * (12 + 16 + 12), 4 * (50 + 108 + 54)
    assert found == 6 * product + convolution
