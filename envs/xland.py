"""XLand-MiniGrid's worlds, by xminigrid's names: `--envs XLand-MiniGrid-R4-9x9`. Needs xminigrid.

Each episode draws its task: two objects become a third one when one is put down beside the other,
and picking up the third one ends the episode. A view is xminigrid's, with the object
that the agent carries at the agent's cell; a panorama is the views in the four directions.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from envs.adapters import AdaptedState, Environment, Seen, Transition, batch_of, typed_transition
from envs.errors import did_you_mean
from envs.types import World


def make(name: str, num_worlds: int) -> World[AdaptedState]:
    """Return worlds of XLand-MiniGrid.

    Raises:
        ModuleNotFoundError: xminigrid is not installed.
        ValueError: the name is not xminigrid's.
    """
    import xminigrid
    from xminigrid.core.constants import NUM_COLORS, PICKABLE
    from xminigrid.core.goals import AgentHoldGoal
    from xminigrid.core.observation import transparent_field_of_view
    from xminigrid.core.rules import TileNearRule
    from xminigrid.types import RuleSet

    if name not in (known := xminigrid.registered_environments()):
        raise ValueError(did_you_mean(name, known))
    env, params = xminigrid.make(name)
    side = params.view_size

    def draw_task(key: PRNGKeyArray) -> Any:
        tiles = jax.random.choice(key, len(PICKABLE) * (NUM_COLORS - 1), (3,), replace=False)
        kinds, colours = PICKABLE[tiles % len(PICKABLE)], 1 + tiles // len(PICKABLE)
        one, other, product = jnp.stack([kinds, colours], -1).astype(jnp.uint8)
        rule = TileNearRule(tile_a=one, tile_b=other, prod_tile=product).encode()
        goal = AgentHoldGoal(tile=product).encode()
        return RuleSet(goal=goal, rules=rule[None], init_tiles=jnp.stack([one, other]))

    def look(state: Any) -> Seen:
        views = [
            transparent_field_of_view(state.grid, state.agent.replace(direction=facing), side, side)
            for facing in (*range(4), state.agent.direction)
        ]
        kind, colour = state.agent.pocket.astype(jnp.uint8)
        carried = NUM_COLORS * kind + colour
        third = jnp.zeros((side, side, 1), jnp.uint8).at[-1, side // 2].set(carried)
        view = jnp.concatenate([views.pop().astype(jnp.uint8), third], -1)
        return Seen(view, jnp.append(jnp.stack(views).ravel(), carried).astype(jnp.uint8))

    def reset(key: PRNGKeyArray) -> tuple[Any, Seen]:
        task_key, key = jax.random.split(key)
        timestep = env.reset(params.replace(ruleset=draw_task(task_key)), key)
        return timestep, look(timestep.state)

    def step(key: PRNGKeyArray, before: Any, action: Array, _: Array) -> tuple[Any, Transition]:
        after = env.step(params, before, action)
        terminated = after.discount == 0
        truncated, success = after.last() & ~terminated, terminated
        seen = look(after.state)
        return after, typed_transition(seen, after.reward, terminated, truncated, success)

    return batch_of(
        Environment(
            name=name,
            num_actions=env.num_actions(params),
            max_steps=int(params.max_steps or 0),
            reset=reset,
            step=step,
        ),
        num_worlds,
    )
