"""Curiosity by hand."""

import numpy as np
import pytest

from cbet_jax.intrinsic.curiosity import curiosity
from cbet_jax.intrinsic.interface import Params
from tests.support.handmade_networks import (
    ACTION,
    V,
    check_models_loss,
    computed,
    forward_error,
    models_params,
    settings,
)
from tests.support.moments import trajectory


@pytest.mark.parametrize("squared", [False, True])
def test_the_error_of_the_forward_model_is_the_reward(squared):
    method, params = curiosity(settings(squared), 2), Params(models_params(), {})
    played = trajectory(V, ACTION)
    reward, loss = computed(method, params, played)
    np.testing.assert_allclose(reward, forward_error(squared), rtol=1e-5)
    check_models_loss(loss, squared)
    assert method.coefficient == 0.1
