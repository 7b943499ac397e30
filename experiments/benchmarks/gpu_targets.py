"""Descriptions of GPUs, from which XLA can compile for one that is not there."""

from pathlib import Path

from cbet_jax.config import SettingsError
from envs.errors import did_you_mean

# A `GpuTargetConfigProto` of XLA as text. NVIDIA's data sheets and the CUDA programming guide give
# the numbers of compute capability 9.0.
HOPPER = """
gpu_device_info {{
  name: "{name}"
  model_str: "{name}"
  device_vendor: "NVIDIA Corporation"
  platform_version: "Compute Capability 9.0a"
  cuda_compute_capability {{ major: 9 feature_extension: ACCELERATED_FEATURES }}
  core_count: 132
  fpus_per_core: 128
  clock_rate_ghz: 1.98
  device_memory_size: {memory}
  memory_bandwidth: {bandwidth}
  l2_cache_size: 52428800
  pcie_bandwidth: 34359738368
  ecc_enabled: true
  device_address_bits: 64
  shared_memory_per_core: 233472
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: 232448
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  threads_per_warp: 32
  threads_per_block_limit: 1024
  threads_per_core_limit: 2048
  thread_dim_limit_x: 1024
  thread_dim_limit_y: 1024
  thread_dim_limit_z: 64
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  driver_version: "13.0.0"
  runtime_version: "13.0.0"
  compile_time_toolkit_version: "13.0.0"
  dnn_version: "9.20.0"
  device_interconnect_info {{ active_links: 18 }}
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 20 }}
device_description_str: "{name}"
"""
TARGETS = {
    "h200": HOPPER.format(name="NVIDIA H200", memory=141 * 2**30, bandwidth=4_800_000_000_000),
    "h100": HOPPER.format(name="NVIDIA H100", memory=80 * 2**30, bandwidth=3_350_000_000_000),
}


def describe(gpu: str) -> str:
    """Return the description of a GPU.

    Args:
        gpu: a name in `TARGETS`, or the path of a file that holds a description.

    Raises:
        SettingsError: there is neither.
    """
    if gpu in TARGETS:
        return TARGETS[gpu]
    try:
        return Path(gpu).read_text()
    except (OSError, UnicodeDecodeError):
        raise SettingsError(
            f"no GPU is called {gpu!r}, and no file describes it; {did_you_mean(gpu, TARGETS)}"
        ) from None


def named_like(device_kind: str) -> str:
    """Return the name of the description that fits a device best, such as `NVIDIA H100 80GB`."""
    return next((name for name in TARGETS if name in device_kind.lower()), "h200")
