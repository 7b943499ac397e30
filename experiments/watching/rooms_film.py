"""Frames of an episode in Habitat: the view, the panorama, and the path on a map."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import PRNGKeyArray
from PIL import Image, ImageDraw

from cbet_jax.agent import Agent, AgentParams
from cbet_jax.rollout import ActorState, act, begin_actor
from cbet_jax.runs.signals import interruptible
from envs.habitat.simulator import ACTIONS, PANORAMA_SHAPE, VIEW_SIZE, FloorMap, forward_vector
from envs.types import World
from experiments.evaluation.walks import distinct
from experiments.watching.film import (
    LINE,
    MARGIN,
    PALE_INK,
    Picture,
    font,
    titled_canvas,
    write_facts,
)

VIEW, COMPASS_VIEW = 4 * VIEW_SIZE, 2 * VIEW_SIZE  # pixels
SIDES = {"west": 1, "north": 0, "east": 3, "south": 2}  # -> number in the panorama, left to right
COLUMN = COMPASS_VIEW * len(SIDES)
LARGEST_MAP = 480  # pixels
MAP_CELL_METRES = 0.05
PATH, AGENT = (0, 90, 255), (230, 40, 30)
RADIUS, NOSE = 4, 12  # pixels, of the agent on the map


class Sight(NamedTuple):
    """One moment of an episode."""

    view: np.ndarray  # uint8[64, 64, 3]
    panorama: np.ndarray  # uint8[4, 64, 64, 3]
    path: np.ndarray  # float[moments, 2], x and z since the episode began
    heading: float  # degrees
    episode: int  # 1, 2, ...
    action: str  # the action that led here; "" at the first moment


def play(
    world: World,
    agent: Agent,
    params: AgentParams,
    key: PRNGKeyArray,
    episodes: int,
    steps: int,
    limit: int | None = None,
    *,
    random_starts: bool = False,
) -> Iterator[Sight]:
    """Play, and yield the first moment of each episode and one after each action.

    Args:
        world: one scene (`num_worlds` 1), whose own episodes are longer than `steps`.
        agent: the agent, whose actions are sampled.
        params: the agent's parameters.
        key: draws starts and actions.
        episodes: limit on the episodes.
        steps: length of an episode.
        limit: limit on the actions of all episodes together (None: no limit).
        random_starts: whether every episode begins in another place.
    """
    world_key, play_key = jax.random.split(key)
    begin = jax.jit(lambda key: begin_actor(agent, world, key))
    advance = jax.jit(partial(act, agent, world))
    played = 0
    for episode in range(1, episodes + 1):
        start_key = jax.random.fold_in(world_key, episode if random_starts else 0)
        actor = interruptible(partial(begin, start_key))
        params = agent.precompute(params, actor.step.view) if episode == 1 else params
        path = [_place(actor)]
        yield _sight(actor, path, episode, "")
        for _ in range(steps):
            if played == limit:
                return
            action_key = jax.random.fold_in(play_key, played)
            actor, transition = interruptible(partial(advance, params, actor, action_key))
            played += 1
            if transition.truncated[0]:  # the simulator was lost: a new episode begins elsewhere
                path.clear()
            path.append(_place(actor))
            yield _sight(actor, path, episode, ACTIONS[int(transition.action[0])])


def _place(actor: ActorState) -> np.ndarray:
    return np.asarray(actor.world.position)[0, [0, 2]]


def _sight(actor: ActorState, path: list[np.ndarray], episode: int, action: str) -> Sight:
    return Sight(
        view=np.asarray(actor.step.view[0]),
        panorama=np.asarray(actor.step.panorama[0]).reshape(PANORAMA_SHAPE),
        path=np.array(path),
        heading=float(actor.world.heading[0]),
        episode=episode,
        action=action,
    )


def frame(title: str, drawn: FloorMap, sight: Sight) -> Picture:
    """Draw a moment: the view and the facts above the panorama, beside the map with the path."""
    plan = _plan(drawn, sight)
    height = LINE + 2 * MARGIN + max(VIEW + MARGIN + COMPASS_VIEW + LINE, plan.height)
    canvas, pen = titled_canvas(title, COLUMN + plan.width + 3 * MARGIN, height)
    top = MARGIN + LINE
    canvas.paste(_enlarged(sight.view, VIEW), (MARGIN, top))
    canvas.paste(plan, (COLUMN + 2 * MARGIN, top))
    facts = {
        "episode": str(sight.episode),
        "step": str(len(sight.path) - 1),
        "action": sight.action,
        "positions": str(distinct(sight.path)),
    }
    write_facts(pen, (VIEW + 2 * MARGIN, top), facts.items())
    below = top + VIEW + MARGIN
    for column, (side, number) in enumerate(SIDES.items()):
        left = MARGIN + column * COMPASS_VIEW
        canvas.paste(_enlarged(sight.panorama[number], COMPASS_VIEW), (left, below))
        pen.text((left, below + COMPASS_VIEW), side, PALE_INK, font())
    return np.asarray(canvas)


def _plan(drawn: FloorMap, sight: Sight) -> Image.Image:
    """Draw the map with the path, and the agent with a nose that shows its heading."""
    rows, columns = drawn.walkable.shape
    scale = LARGEST_MAP / max(rows, columns)
    plan = Image.fromarray(drawn.picture).resize((round(columns * scale), round(rows * scale)))
    draw = ImageDraw.Draw(plan)
    points = [(float(x), float(z)) for x, z in (sight.path - drawn.corner) / drawn.cell * scale]
    if len(points) > 1:
        draw.line(points, PATH, width=2)
    (x, z), (right, down) = points[-1], forward_vector(sight.heading)
    draw.line([(x, z), (x + NOSE * right, z + NOSE * down)], AGENT, width=2)
    draw.ellipse((x - RADIUS, z - RADIUS, x + RADIUS, z + RADIUS), AGENT)
    return plan


def _enlarged(image: np.ndarray, size: int) -> Image.Image:
    return Image.fromarray(image).resize((size, size), Image.Resampling.NEAREST)
