"""Inverse and forward models, from which methods learn their embedding.

The inverse model predicts the action from the embedded views before and after it. The forward
model predicts the embedded view after the action from the one before it (Pathak et al., 2017).
Both losses also train the embedding. Curiosity and RIDE have both models, others the inverse one.
"""

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from cbet_jax.config import AuxiliarySettings
from cbet_jax.intrinsic.interface import Loss, Params
from cbet_jax.losses import sequence_mean
from cbet_jax.networks import initializers
from cbet_jax.networks.embedding import Embedding, apply, distance, init_params
from cbet_jax.types import ArrayTree, Trajectory
from envs.types import Step


class InverseModel(nn.Module):
    """Predict the action between two views: a dense layer with a ReLU, then the logits."""

    hidden_units: int
    num_actions: int

    @nn.compact
    def __call__(
        self, before: Float[Array, "T N numbers"], after: Float[Array, "T N numbers"]
    ) -> Float[Array, "T N actions"]:
        both = jnp.concatenate([before, after], axis=-1)
        return _two_layers(both, self.hidden_units, self.num_actions)


class ForwardModel(nn.Module):
    """Predict the next embedding: a dense layer with a ReLU, then a linear one."""

    hidden_units: int
    num_actions: int

    @nn.compact
    def __call__(
        self, before: Float[Array, "T N numbers"], action: Int[Array, "T N"]
    ) -> Float[Array, "T N numbers"]:
        both = jnp.concatenate([before, jax.nn.one_hot(action, self.num_actions)], axis=-1)
        return _two_layers(both, self.hidden_units, before.shape[-1])


def _two_layers(x: Float[Array, "T N inputs"], hidden: int, outputs: int) -> Array:
    x = nn.relu(nn.Dense(hidden, kernel_init=initializers.HIDDEN, name="hidden")(x))
    return nn.Dense(outputs, kernel_init=initializers.OUTPUT, name="output")(x)


class Models(NamedTuple):
    """The three networks. Their parameters are a dictionary with the same keys."""

    embedding: Embedding
    inverse: InverseModel
    forward: ForwardModel


class Predictions(NamedTuple):
    """What the models predict for each step of a trajectory."""

    before: Float[Array, "T N numbers"]  # phi(s)
    after: Float[Array, "T N numbers"]  # phi(s')
    predicted: Float[Array, "T N numbers"]  # forward(phi(s), a)
    action_logits: Float[Array, "T N actions"]  # inverse(phi(s), phi(s'))


class InverseEmbedding(NamedTuple):
    """An embedding that learns from an inverse model only."""

    embedding: Embedding
    inverse: InverseModel
    weight: float  # weight of the loss

    def init(
        self, key: PRNGKeyArray, step: Step
    ) -> tuple[dict[str, ArrayTree], Float[Array, "N numbers"]]:
        """Return the initial parameters of both networks, and the embedded views of a step."""
        embedding_key, model_key = jax.random.split(key)
        views = step.view[None]
        phi = init_params(self.embedding, embedding_key, views)
        seen = apply(self.embedding, phi, views)
        inverse = init_params(self.inverse, model_key, seen, seen)
        return {"embedding": phi, "inverse": inverse}, seen[0]

    def embed(
        self, params: Params, view: UInt8[Array, "T N height width 3"]
    ) -> Float[Array, "T N numbers"]:
        """Return the embedded views."""
        return apply(self.embedding, params.learnt["embedding"], view)

    def loss(self, params: Params, trajectory: Trajectory) -> Loss:
        """Return the weighted cross entropy of the actions, and the same without its weight.

        An action that ends an episode counts 0, as in the code of Wan et al. (2023) for NGU: the
        next view is another episode's.
        """
        seen = apply(self.embedding, params.learnt["embedding"], trajectory.view)
        logits = apply(self.inverse, params.learnt["inverse"], seen[:-1], seen[1:])
        steps = trajectory.steps
        errors = optax.softmax_cross_entropy_with_integer_labels(logits, steps.action)
        error = sequence_mean(jnp.where(steps.ended, 0.0, errors))
        return self.weight * error, {"inverse_loss": error}


def make_inverse_embedding(settings: AuxiliarySettings, num_actions: int) -> InverseEmbedding:
    """Return an embedding and its inverse model."""
    inverse = InverseModel(settings.hidden_units, num_actions)
    return InverseEmbedding(Embedding(settings.channels), inverse, settings.inverse_weight)


def make_models(settings: AuxiliarySettings, num_actions: int) -> Models:
    """Return an embedding, its inverse and its forward model."""
    return Models(
        embedding=Embedding(settings.channels),
        inverse=InverseModel(settings.hidden_units, num_actions),
        forward=ForwardModel(settings.hidden_units, num_actions),
    )


def init_models(models: Models, key: PRNGKeyArray, step: Step) -> dict[str, ArrayTree]:
    """Return the initial parameters of each network."""
    embedding_key, inverse_key, forward_key = jax.random.split(key, 3)
    views = step.view[None]
    embedding = init_params(models.embedding, embedding_key, views)
    before = apply(models.embedding, embedding, views)
    action = jnp.zeros(before.shape[:2], jnp.int32)
    return {
        "embedding": embedding,
        "inverse": init_params(models.inverse, inverse_key, before, before),
        "forward": init_params(models.forward, forward_key, before, action),
    }


def predict(models: Models, params: dict[str, ArrayTree], trajectory: Trajectory) -> Predictions:
    """Return the predictions for each step, including the last step of each episode."""
    embedded = apply(models.embedding, params["embedding"], trajectory.view)
    before, after = embedded[:-1], embedded[1:]
    if trajectory.steps.final_view is not None:
        after = apply(models.embedding, params["embedding"], trajectory.reached)
    return Predictions(
        before=before,
        after=after,
        predicted=apply(models.forward, params["forward"], before, trajectory.steps.action),
        action_logits=apply(models.inverse, params["inverse"], before, after),
    )


def prediction_error(predictions: Predictions, settings: AuxiliarySettings) -> Float[Array, "T N"]:
    """Return the forward model's error at each step, ||forward(phi(s), a) - phi(s')||."""
    return distance(predictions.predicted, predictions.after, squared=settings.squared_norms)


def models_loss(
    predictions: Predictions, action: Int[Array, "T N"], settings: AuxiliarySettings
) -> Loss:
    """Return the loss of all three networks, and its two terms, unweighted.

    Pairs of views that span two episodes count, as published; final views leave none.
    """
    error = prediction_error(predictions, settings)
    cross_entropy = optax.softmax_cross_entropy_with_integer_labels(
        predictions.action_logits, action
    )
    forward_loss, inverse_loss = sequence_mean(error), sequence_mean(cross_entropy)
    total = settings.forward_weight * forward_loss + settings.inverse_weight * inverse_loss
    return total, {"forward_loss": forward_loss, "inverse_loss": inverse_loss}
