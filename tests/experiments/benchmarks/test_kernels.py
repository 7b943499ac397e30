"""What a device did, read from its profile."""

import pytest
from jax.profiler import ProfileData

from experiments.benchmarks.kernels import read, summary

GPU = """
planes { name: "/device:GPU:0"
  lines { name: "Stream #13(Compute)"
    events { metadata_id: 1 duration_ps: 3000000 } events { metadata_id: 1 duration_ps: 1000000 }
    events { metadata_id: 2 duration_ps: 9000000 } events { metadata_id: 3 duration_ps: 1000000 } }
  lines { name: "Stream #14(MemcpyH2D)" events { metadata_id: 4 duration_ps: 1000000 } }
  lines { name: "XLA Modules" events { metadata_id: 5 duration_ps: 90000000 } }
  event_metadata { key: 1 value { id: 1 name: "loop_add_fusion_7" } }
  event_metadata { key: 2 value { id: 2 name: "gemm" } }
  event_metadata { key: 3 value { id: 3 name: "MemcpyD2H" } }
  event_metadata { key: 4 value { id: 4 name: "MemcpyH2D" } }
  event_metadata { key: 5 value { id: 5 name: "jit_advance" } } }
planes { name: "/host:CPU" }
"""


def test_a_gpus_profile_is_read():
    seen = read(ProfileData.from_text_proto(GPU))
    assert [(kernel.name, kernel.calls) for kernel in seen.kernels] == [
        ("gemm", 1),
        ("loop_add_fusion_7", 2),
    ]
    assert (seen.to_host, seen.from_host) == (1, 1)
    assert seen.seconds == pytest.approx(13e-6)
    program = '  %loop_add_fusion.7 = f32[] fusion(), metadata={op_name="jit(f)/while/body/add"}'
    found = summary(seen, program, steps=2)
    assert found["kernels_per_step"] == 1.5
    assert found["in_every_step"] == 1
    assert found["largest"][1]["from"] == "jit(f)/add"
