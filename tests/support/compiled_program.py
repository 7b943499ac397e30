"""A compiled program for a GPU, short enough to count by hand, as XLA prints programs.

An acting loop of 10 turns holds a product, a table's update in place and a copy; a loop of unknown
length refills; the update is one fill and one sum.
"""

PROGRAM = """HloModule jit_advance, is_scheduled=true

FileNames
1 "/somewhere/cbet_jax/rollout.py"
2 "/somewhere/envs/minigrid/pool.py"
3 "/somewhere/cbet_jax/learner.py"
4 "/lib/python3.12/site-packages/jax/lax.py"

FunctionNames
1 "rollout"
2 "_fill_ring"
3 "learn"
4 "inner"

FileLocations
1 {file_name_id=1 function_name_id=1 line=100 end_line=100 column=1 end_column=2}
2 {file_name_id=2 function_name_id=2 line=140 end_line=140 column=1 end_column=2}
3 {file_name_id=3 function_name_id=3 line=7 end_line=7 column=1 end_column=2}
4 {file_name_id=4 function_name_id=4 line=9 end_line=9 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=1}
4 {file_location_id=4 parent_frame_id=2}

%written (p0: f32[100,8], p1: s32[], p2: f32[4,8]) -> f32[100,8] {
  %p0 = f32[100,8]{1,0} parameter(0)
  %p2 = f32[4,8]{1,0} parameter(2)
  %p1 = s32[] parameter(1)
  %zero = s32[] constant(0)
  %part = f32[1,8]{1,0} slice(%p2), slice={[0:1], [0:8]}
  ROOT %put = f32[100,8]{1,0} dynamic-update-slice(%p0, %part, %p1, %zero)
}

%product (q0: bf16[4,16], q1: bf16[16,8]) -> f32[4,8] {
  %q0 = bf16[4,16]{1,0} parameter(0)
  %q1 = bf16[16,8]{1,0} parameter(1)
  ROOT %dot = f32[4,8]{1,0} dot(%q0, %q1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%counter (c0: s32[]) -> s32[] {
  %c0 = s32[] parameter(0)
  %one = s32[] constant(1)
  ROOT %next = s32[] add(%c0, %one)
}

%acting_body (state: (s32[], f32[100,8], bf16[4,16], bf16[16,8])) -> (s32[], f32[100,8]) {
  %state = (s32[], f32[100,8]{1,0}, bf16[4,16]{1,0}, bf16[16,8]{1,0}) parameter(0)
  %t = s32[] get-tuple-element(%state), index=0
  %table = f32[100,8]{1,0} get-tuple-element(%state), index=1
  %x = bf16[4,16]{1,0} get-tuple-element(%state), index=2
  %w = bf16[16,8]{1,0} get-tuple-element(%state), index=3
  %gemm = f32[4,8]{1,0} fusion(%x, %w), kind=kCustom, calls=%product, metadata={stack_frame_id=4}
  %kept = f32[100,8]{1,0} fusion(%table, %t, %gemm), kind=kLoop, calls=%written, metadata={stack_frame_id=1}
  %copy.1 = bf16[4,16]{1,0} copy(%x)
  %add.1 = s32[] fusion(%t), kind=kLoop, calls=%counter
  ROOT %out = (s32[], f32[100,8]{1,0}, bf16[4,16]{1,0}, bf16[16,8]{1,0}) tuple(%add.1, %kept, %copy.1, %w)
}

%refill_body (n: (s32[])) -> (s32[]) {
  %n = (s32[]) parameter(0)
  %i = s32[] get-tuple-element(%n), index=0
  %add.2 = s32[] fusion(%i), kind=kLoop, calls=%counter
  ROOT %again = (s32[]) tuple(%add.2)
}

%holds (m: (s32[])) -> pred[] {
  %m = (s32[]) parameter(0)
  ROOT %yes = pred[] constant(true)
}

ENTRY %main (a0: (s32[], f32[100,8], bf16[4,16], bf16[16,8]), a1: (s32[])) -> f32[8] {
  %a0 = (s32[], f32[100,8]{1,0}, bf16[4,16]{1,0}, bf16[16,8]{1,0}) parameter(0)
  %a1 = (s32[]) parameter(1)
  %refill = (s32[]) while(%a1), condition=%holds, body=%refill_body, metadata={stack_frame_id=2}
  %play = (s32[], f32[100,8]{1,0}, bf16[4,16]{1,0}, bf16[16,8]{1,0}) while(%a0), condition=%holds, body=%acting_body, metadata={stack_frame_id=1}, backend_config={"known_trip_count":{"n":"10"}}
  %fill = f32[8]{0} broadcast(%a1), dimensions={}, metadata={stack_frame_id=3}
  %spare = f32[8]{0} custom-call(), custom_call_target="AllocateBuffer"
  ROOT %sum = f32[8]{0} add(%fill, %fill), metadata={stack_frame_id=3}
}
"""  # noqa: E501
