"""Models of what actions do to embedded views: Curiosity and RIDE learn their embedding by them.

The inverse model tells the action from the views before and after it, the forward model
the view after it from the view before (Pathak et al., 2017). Both losses train the
embedding, too.
"""

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from cbet_jax.config import AuxiliarySettings
from cbet_jax.intrinsic.types import Metrics
from cbet_jax.networks.embedding import Embedding, apply, distance, draw, sequence_loss
from cbet_jax.types import Trajectory
from envs.types import Step

ORTHOGONAL = nn.initializers.orthogonal


class InverseModel(nn.Module):
    """Tells which action led from one view to the next."""

    hidden_units: int
    num_actions: int

    @nn.compact
    def __call__(
        self, before: Float[Array, "T N numbers"], after: Float[Array, "T N numbers"]
    ) -> Float[Array, "T N actions"]:
        both = jnp.concatenate([before, after], axis=-1)
        return _two_layers(both, self.hidden_units, self.num_actions)


class ForwardModel(nn.Module):
    """Foresees the embedding of the next view."""

    hidden_units: int
    num_actions: int

    @nn.compact
    def __call__(
        self, before: Float[Array, "T N numbers"], action: Int[Array, "T N"]
    ) -> Float[Array, "T N numbers"]:
        both = jnp.concatenate([before, jax.nn.one_hot(action, self.num_actions)], axis=-1)
        return _two_layers(both, self.hidden_units, before.shape[-1])


def _two_layers(x: Float[Array, "T N inputs"], hidden: int, outputs: int) -> Array:
    x = nn.relu(nn.Dense(hidden, kernel_init=ORTHOGONAL(np.sqrt(2)), name="hidden")(x))
    return nn.Dense(outputs, kernel_init=ORTHOGONAL(1.0), name="output")(x)


class Models(NamedTuple):
    """The three networks. Their parameters are a dictionary with the same names."""

    embedding: Embedding
    inverse: InverseModel
    forward: ForwardModel


class Predictions(NamedTuple):
    """What the models say of each step of a trajectory."""

    before: Float[Array, "T N numbers"]  # phi(s)
    after: Float[Array, "T N numbers"]  # phi(s')
    foreseen: Float[Array, "T N numbers"]  # forward(phi(s), a)
    action_logits: Float[Array, "T N actions"]  # inverse(phi(s), phi(s'))


def make_models(settings: AuxiliarySettings, num_actions: int) -> Models:
    """Puts the three networks together."""
    return Models(
        embedding=Embedding(settings.channels),
        inverse=InverseModel(settings.hidden_units, num_actions),
        forward=ForwardModel(settings.hidden_units, num_actions),
    )


def draw_models(models: Models, key: PRNGKeyArray, step: Step) -> dict[str, Any]:
    """Returns the parameters of each network before it has learnt."""
    embedding_key, inverse_key, forward_key = jax.random.split(key, 3)
    views = step.view[None]
    embedding = draw(models.embedding, embedding_key, views)
    before = apply(models.embedding, embedding, views)
    action = jnp.zeros(before.shape[:2], jnp.int32)
    return {
        "embedding": embedding,
        "inverse": draw(models.inverse, inverse_key, before, before),
        "forward": draw(models.forward, forward_key, before, action),
    }


def predict(models: Models, params: dict[str, Any], trajectory: Trajectory) -> Predictions:
    """Returns what the models say of each step, the ends of episodes among them."""
    embedded = apply(models.embedding, params["embedding"], trajectory.view)
    before, after = embedded[:-1], embedded[1:]
    return Predictions(
        before=before,
        after=after,
        foreseen=apply(models.forward, params["forward"], before, trajectory.action),
        action_logits=apply(models.inverse, params["inverse"], before, after),
    )


def models_loss(
    predictions: Predictions, action: Int[Array, "T N"], settings: AuxiliarySettings
) -> tuple[Float[Array, ""], Metrics]:
    """Returns what all three networks learn from, and its two terms, unweighted."""
    foreseen, after = predictions.foreseen, predictions.after
    surprise = distance(foreseen, after, squared=settings.squared_norms)
    cross_entropy = optax.softmax_cross_entropy_with_integer_labels(
        predictions.action_logits, action
    )
    forward_loss, inverse_loss = sequence_loss(surprise), sequence_loss(cross_entropy)
    total = settings.forward_weight * forward_loss + settings.inverse_weight * inverse_loss
    return total, {"forward_loss": forward_loss, "inverse_loss": inverse_loss}
