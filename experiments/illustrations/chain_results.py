"""What the rules for resetting counts lead to on the chain: a table and a figure."""

from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from cbet_jax.analysis import figures
from cbet_jax.analysis.method_style import OTHERS as COLORS
from cbet_jax.config import SettingsError
from cbet_jax.intrinsic import COUNT_REWARDS
from cbet_jax.program import seed_keys
from experiments.common import outputs
from experiments.illustrations import chain
from experiments.illustrations.illustration_options import END, ChainworldOptions
from experiments.reports.comparison import within

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAME = "chainworld"
UNIFORM = 1 / 3  # each place's share of the steps outside A, if all three are visited alike
PATHS = {"ABCBCB...": chain.GO_TO_B, "ADDDDD...": chain.GO_TO_D}


def learn_and_write(options: ChainworldOptions, console: Console) -> tuple[Path, Path]:
    """Learn with each rule, print the results, and return the files of the table and the figure.

    Raises:
        SettingsError: no such method rewards counts.
    """
    if options.method not in COUNT_REWARDS:
        raise SettingsError(f"the chain has rewards of counts only: {', '.join(COUNT_REWARDS)}")
    folder = outputs.new_folder(options.out, NAME)
    keys = seed_keys(options.seeds, options.first_seed)
    with console.status("learning"):
        learnt = chain.learn(options.train, COUNT_REWARDS[options.method], rules_of(options), keys)
        learnt = jax.tree.map(np.asarray, learnt)
    show(console, options, learnt)
    return write(folder, options, learnt)


def rules_of(options: ChainworldOptions) -> tuple[chain.Rule, ...]:
    """Return the rules to compare."""
    return (
        chain.Rule("at each episode's end", at_the_end=True, probability=0.0),
        *(
            chain.Rule(f"at random, p = {p:g}", at_the_end=False, probability=p)
            for p in options.reset_probabilities
        ),
        chain.Rule("never", at_the_end=False, probability=0.0),
    )


def at_the_end(learnt: chain.Learnt) -> chain.Learnt:
    """Return means over the last episodes: arrays [rules, seeds, ...]."""
    last = learnt.to_d.shape[2] // END
    return chain.Learnt(*(leaf[:, :, -last:].mean(2) for leaf in learnt))


def outside_of_a(share: np.ndarray) -> np.ndarray:
    """Return the shares of B, C and D in the steps outside A."""
    return share[..., 1:] / share[..., 1:].sum(-1, keepdims=True)


def show(console: Console, options: ChainworldOptions, learnt: chain.Learnt) -> None:
    """Print the returns of both paths, and each rule's results."""
    discounts = options.discount ** np.arange(options.steps)
    reward = COUNT_REWARDS[options.method]
    returns = {p: discounts @ chain.fresh_rewards(reward, PATHS[p], options.steps) for p in PATHS}
    paths = ", ".join(f"{path} {value:.3f}" for path, value in returns.items())
    console.print(f"intrinsic return with empty counts: {paths}", highlight=False)
    title = "Last fifth of the episodes; intervals: 95 % confidence, over seeds"
    shown = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    shown.add_column("counts forgotten", no_wrap=True)
    for heading in ("from A to D", "in B", "in C", "in D", "reward"):
        shown.add_column(heading, justify="right", no_wrap=True)
    end = at_the_end(learnt)
    for rule, to_d, share, reward in zip(rules_of(options), *end, strict=True):
        places = outside_of_a(share).mean(0)
        goes = within("success", to_d).text(3)
        shown.add_row(rule.name, goes, *(f"{x:.3f}" for x in places), f"{reward.mean():.2g}")
    console.print(shown)


def write(folder: Path, options: ChainworldOptions, learnt: chain.Learnt) -> tuple[Path, Path]:
    """Write one row for each rule and seed, and the figure."""
    header = ("forgotten", "seed", "to_d", *(f"share_{p}" for p in chain.PLACES), "reward")
    end = at_the_end(learnt)
    rows = [
        (
            rule.name,
            options.first_seed + seed,
            *map(float, (end.to_d[i, seed], *end.share[i, seed], end.reward[i, seed])),
        )
        for i, rule in enumerate(rules_of(options))
        for seed in range(options.seeds)
    ]
    table = outputs.write_table(folder / f"{NAME}.csv", header, rows)
    return table, draw(folder / f"{NAME}.png", options, learnt)


def draw(path: Path, options: ChainworldOptions, learnt: chain.Learnt) -> Path:
    """Draw the returns of both paths, the policies, and the places they visit."""
    figure, (paths, policy, places) = figures.grid(3, columns=3, size=(4.3, 3.7))
    _draw_returns(paths, options)
    _draw_policies(policy, options, learnt)
    _draw_places(places, learnt)
    figure.legend(
        *policy.get_legend_handles_labels(),
        title="counts are forgotten",
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    return figures.save(path, figure)


def _draw_returns(axis: "Axes", options: ChainworldOptions) -> None:
    discounts = options.discount ** np.arange(options.steps)
    for (path, action), style in zip(PATHS.items(), ("-", "--"), strict=True):
        rewards = chain.fresh_rewards(COUNT_REWARDS[options.method], action, options.steps)
        steps = np.arange(1, options.steps + 1)
        axis.plot(steps, np.cumsum(discounts * rewards), style, color="black", label=path)
    axis.set_title("An episode that begins with empty counts", fontsize=10)
    axis.set(xlabel="step", ylabel="intrinsic return so far")
    axis.legend(frameon=False)


def _draw_policies(axis: "Axes", options: ChainworldOptions, learnt: chain.Learnt) -> None:
    episodes = np.arange(1, options.episodes + 1)
    for rule, seeds, color in zip(rules_of(options), learnt.to_d, cycle(COLORS), strict=False):
        axis.plot(episodes, seeds.mean(0), color=color, label=rule.name)
        axis.fill_between(episodes, seeds.min(0), seeds.max(0), color=color, alpha=0.2, lw=0)
    axis.set_title("The policy in A (band: range of seeds)", fontsize=10)
    axis.set(xlabel="episode", ylabel="chance to go to D", ylim=(0, 1))


def _draw_places(axis: "Axes", learnt: chain.Learnt) -> None:
    spent = outside_of_a(at_the_end(learnt).share)  # [rules, seeds, 3]
    width = 0.8 / len(spent)
    for number, (seeds, color) in enumerate(zip(spent, cycle(COLORS), strict=False)):
        value, low, high = np.array([within("success", seeds[:, place]) for place in range(3)]).T
        at = np.arange(3) + (number - (len(spent) - 1) / 2) * width
        errors = [value - low, high - value]
        axis.bar(at, value, width * 0.9, yerr=errors, color=color, capsize=2)
    axis.axhline(UNIFORM, color="black", lw=0.8, ls=":")
    axis.set_xticks(np.arange(3), list(chain.PLACES[1:]))
    axis.set_title("Places, last fifth of the episodes", fontsize=10)
    axis.set_ylabel("share of the steps outside of A\n(dotted: uniform)")
