"""Playing for people to watch: what is recorded of each step."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cbet_jax.agent import AgentParams, uniform
from cbet_jax.intrinsic.interface import Intrinsic, Params
from envs.minigrid import cells as c
from envs.minigrid import rules, views
from envs.minigrid.generators.generator import make_generator
from envs.minigrid.level import REACH_GOAL
from envs.minigrid.level_text import from_text
from envs.minigrid.world import gridworld
from experiments.watching.playing import Moment, Player, play, side_by_side
from tests.support.watched import KEY, MAX_STEPS, corridor, network_player


def test_an_episode_ends_with_success_unless_it_explores(moments, explored):
    assert {moment.episode for moment in moments} == {1, 2}
    for number in (1, 2):
        episode = [moment for moment in moments if moment.episode == number]
        assert [moment.step for moment in episode] == list(range(len(episode)))
        last = episode[-1]
        assert last.event == "success"
        assert last.extrinsic == pytest.approx(1 - 0.9 * last.step / MAX_STEPS)
        assert last.state.level.agent_position.tolist() == [3, 1]  # not yet in the next episode
        assert not any(moment.event or moment.extrinsic for moment in episode[:-1])
    assert len(explored) == MAX_STEPS + 1
    assert explored[-1].event == "out of time"
    assert sum(moment.event == "success" for moment in explored) == 1
    assert sum(moment.extrinsic > 0 for moment in explored) == 1


@jax.jit
def look(state):
    return views.egocentric(state, views.look_around(state)), views.panorama(state)


def test_each_step_has_the_reward_that_it_would_have_in_training(explored):
    seen, around = [], []
    for moment in explored:
        view, panorama = look(moment.state)
        seen.append(np.asarray(view).tobytes())
        around.append(np.asarray(panorama, int))
    states, changes = Counter(seen[:1]), Counter()
    for step in range(1, MAX_STEPS):  # what the last step reveals is of the next episode
        change = (around[step] - around[step - 1]).tobytes()
        states[seen[step]] += 1
        changes[change] += 1
        expected = 1 / (states[seen[step]] + changes[change])
        assert explored[step].intrinsic == pytest.approx(expected), step


def test_a_network_acts_with_its_memory():
    player = network_player(1e6)
    played = list(play(corridor(explore=True), player, KEY, 1, steps=12))
    seen = jnp.stack([look(moment.state)[0] for moment in played[:-1]])[:, None]

    @jax.jit
    def act(first):
        begin = player.agent.initial_state(1)
        logits, *_ = player.agent.apply(player.params, seen, first[:, None], begin)
        return logits[:, 0].argmax(-1)

    def actions(first):
        return [rules.ACTIONS[action] for action in act(jnp.array(first))]

    done = [True] + [moment.event == "success" for moment in played[1:-1]]
    assert [moment.action for moment in played[1:]] == actions(done)
    assert actions(done) != actions([True] * 12)


@pytest.mark.slow  # it compiles another program
def test_lava_ends_an_episode_and_final_views_are_rewarded_with_the_saved_networks():
    level = from_text("WGWGWGWG\nWG>>VRWG\nWGWGWGWG", task=REACH_GOAL, max_steps=9)
    sampled = level, jnp.array(True)
    generator = make_generator("lava", 4, 3, 9, REACH_GOAL, lambda key: sampled, deadly=True)
    chance = uniform(len(rules.ACTIONS))

    def ahead(*given):
        outputs = chance.apply(*given)
        return outputs._replace(logits=outputs.logits.at[..., rules.FORWARD].set(1e3))

    def reward(params, trajectory):
        final = trajectory.steps.final_view[..., views.AGENT_X, views.AGENT_Y, 0]
        return params.fixed["weight"] * final

    def init(key, step):
        return Params({}, {"weight": jnp.zeros(())}), ()

    method = Intrinsic("own", 1.0, reward, init=init, final_views=True)
    saved = Params({}, {"weight": jnp.float32(3)})
    agent = Player("", chance._replace(apply=ahead), AgentParams(()), method, saved)
    played = list(play(gridworld([generator], 1, explore=True), agent, KEY, 2))
    assert [moment.event for moment in played] == ["", "lava"] * 2
    assert [moment.intrinsic for moment in played] == [0, 3 * c.TYPE_EMPTY] * 2


def episode(number: int, steps: int) -> list[Moment]:
    """The moments of an episode in which nothing is seen."""
    return [Moment(None, number, step, "", 0.0, 0.0, 0, "") for step in range(steps + 1)]


def test_plays_side_by_side_wait_for_each_other_at_the_end_of_episodes():
    one, other = [*episode(1, 1), *episode(2, 2)], [*episode(1, 2), *episode(2, 1)]
    together = list(side_by_side(iter(one), iter(other)))
    assert [tuple(moment[1:3] for moment in scene) for scene in together] == [
        *(((1, 0), (1, 0)), ((1, 1), (1, 1)), ((1, 1), (1, 2))),
        *(((2, 0), (2, 0)), ((2, 1), (2, 1)), ((2, 2), (2, 1))),
    ]
