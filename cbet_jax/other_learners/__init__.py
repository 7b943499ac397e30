"""The intrinsic rewards in learners of your own."""
