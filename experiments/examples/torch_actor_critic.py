"""An actor-critic in PyTorch, in our worlds: `python -m experiments.examples.torch_actor_critic`.

It needs the extra `torch`.
"""

import torch
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from torch import nn

import envs.minigrid

WORLD, ENVS, STEPS, UPDATES, DISCOUNT = "DoorKey-5x5", 256, 16, 1000, 0.99


class ActorCritic(nn.Module):
    """A network from views to logits of seven actions and a value."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(147, 128), nn.ReLU())
        self.heads = nn.Linear(128, 8)

    def forward(self, view: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits `[N, 7]` and values `[N]` of views `[N, 7, 7, 3]`."""
        out = self.heads(self.body(view / 10))
        return out[:, :7], out[:, 7]


def main(updates: int = UPDATES, num_envs: int = ENVS) -> float:
    """Train, and return the mean return of the episodes that ended in the last update."""
    worlds = envs.minigrid.gym_vector(WORLD, num_envs, autoreset_mode="SameStep")
    vector = RecordEpisodeStatistics(worlds)
    network = ActorCritic()
    adam = torch.optim.Adam(network.parameters(), lr=1e-3)
    view, _ = vector.reset(seed=0)
    mean = 0.0
    for update in range(updates):
        steps, returns = [], []
        for _ in range(STEPS):
            logits, value = network(torch.as_tensor(view, dtype=torch.float32))
            policy = torch.distributions.Categorical(logits=logits)
            action = policy.sample()
            view, reward, terminated, truncated, info = vector.step(action.numpy())
            going = torch.as_tensor(~(terminated | truncated), dtype=torch.float32)
            steps.append((policy, action, value, torch.as_tensor(reward).float(), going))
            returns += list(info["episode"]["r"][info["_episode"]]) if "episode" in info else []
        with torch.no_grad():
            target = network(torch.as_tensor(view, dtype=torch.float32))[1]
        loss = torch.zeros(())
        for policy, action, value, gain, going in reversed(steps):
            target = gain + DISCOUNT * going * target
            advantage = target - value
            policy_loss = -policy.log_prob(action) * advantage.detach() - 0.01 * policy.entropy()
            loss = loss + (policy_loss + 0.5 * advantage**2).mean() / STEPS
        adam.zero_grad()
        loss.backward()
        adam.step()
        mean = sum(returns) / max(len(returns), 1)
        if update % 50 == 0:
            print(f"{(update + 1) * STEPS * num_envs:,} steps: return {mean:.2f}")
    return mean


if __name__ == "__main__":
    main()
