"""Times of launches from stated rates: an estimate, not a measurement.

A launch takes as long as the slowest of three: to be started, to move its bytes, to compute its
products. Launches follow one another.
"""

import re
from typing import NamedTuple

# Shares of a GPU's peak that programs like these reach, and what no GPU is given for.
MEMORY_SHARES = 0.69, 0.85
PRODUCT_SHARES = 0.35, 0.61
LAUNCH_SECONDS = 1.5e-6, 2.5e-6
WAIT_SECONDS = 10e-6, 30e-6  # for the host to read a number and go on
#: floating-point operations of dense bfloat16 products, a core and clock, by generation
OPERATIONS_PER_CLOCK = {8: 2048, 9: 4096, 10: 8192}
PRODUCT_CLOCK = 0.924  # of the highest clock, while products are computed
SLOWER = {"f32": 0.5, "f64": 0.03}  # than bfloat16, by type of the factors; f32: as TF32


class Seconds(NamedTuple):
    """A time, or a rate: the low and the high estimate."""

    low: float
    high: float


class Rates(NamedTuple):
    """What a GPU is taken to do; of rates, `low` is the slower one."""

    launch: Seconds  # seconds
    wait: Seconds  # seconds
    memory: Seconds  # bytes a second
    products: Seconds  # floating-point operations a second, of bfloat16 factors

    def seconds(self, moved: int, operations: float, kind: str) -> Seconds:
        """Return the time of one launch.

        Args:
            moved: bytes read and written.
            operations: of its products.
            kind: type of their factors, such as bf16.
        """
        slower = SLOWER.get(kind, 1.0)
        low, high = (
            max(start, moved / memory, operations / (slower * products))
            for start, memory, products in zip(
                self.launch, reversed(self.memory), reversed(self.products), strict=True
            )
        )
        return Seconds(low, high)


def rates_of(description: str) -> Rates:
    """Return the rates of a described GPU.

    Args:
        description: a `GpuTargetConfigProto` as text.

    Raises:
        ValueError: it does not say how fast its memory is, or how many cores it has.
    """
    bandwidth, cores, clock = (
        _number(description, name) for name in ("memory_bandwidth", "core_count", "clock_rate_ghz")
    )
    generation = int(_number(description, "major"))
    per_clock = OPERATIONS_PER_CLOCK.get(generation, max(OPERATIONS_PER_CLOCK.values()))
    peak = cores * clock * 1e9 * PRODUCT_CLOCK * per_clock
    return Rates(
        launch=Seconds(*LAUNCH_SECONDS),
        wait=Seconds(*WAIT_SECONDS),
        memory=Seconds(*(share * bandwidth for share in MEMORY_SHARES)),
        products=Seconds(*(share * peak for share in PRODUCT_SHARES)),
    )


def _number(description: str, name: str) -> float:
    found = re.search(rf"\b{name}:\s*([\d.]+)", description)
    if not found:
        raise ValueError(f"the description of the GPU lacks {name}")
    return float(found[1])
