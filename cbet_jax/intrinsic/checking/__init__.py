"""What `cbet_jax.intrinsic.check` is made of."""
