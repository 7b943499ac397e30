"""The names of MiniGrid's environments (ours, MiniGrid's own and gymnasium's), and its actions."""

import re

NAMES = (
    *("MultiRoom-N4-S5", "KeyCorridorS3R3", "BlockedUnlockPickup"),  # the paper's MultiEnv
    *("Unlock", "DoorKey-8x8", "UnlockPickup", "MultiRoom-N6", "MultiRoom-N12-S10"),
    *("ObstructedMaze-1Dlh", "ObstructedMaze-2Dlh", "ObstructedMaze-2Dlhb"),
    *("MultiRoom-N7-S4", "MultiRoomNoisyTV-N7-S4"),  # the paper's, up to here
    *("DoorKey-5x5", "DoorKey-6x6", "DoorKey-16x16", "KeyCorridorS3R1", "KeyCorridorS3R2"),
    *("KeyCorridorS4R3", "KeyCorridorS5R3", "KeyCorridorS6R3", "MultiRoom-N2-S4"),
    *("ObstructedMaze-1Dl", "ObstructedMaze-1Dlhb", "ObstructedMaze-2Dl"),
    *("ObstructedMaze-1Q", "ObstructedMaze-2Q", "ObstructedMaze-Full"),
    *("ObstructedMaze-2Dlhb-v1", "ObstructedMaze-1Q-v1"),
    *("ObstructedMaze-2Q-v1", "ObstructedMaze-Full-v1"),
    *("LavaCrossingS9N1", "LavaCrossingS9N2", "LavaCrossingS9N3", "LavaCrossingS11N5"),
    *("SimpleCrossingS9N1", "SimpleCrossingS9N2", "SimpleCrossingS9N3", "SimpleCrossingS11N5"),
    *("LavaGapS5", "LavaGapS6", "LavaGapS7"),
)

# The ten environments to which the paper transfers its policies (section 4.1).
TRANSFER = (
    *("Unlock", "DoorKey-8x8", "KeyCorridorS3R3", "UnlockPickup", "BlockedUnlockPickup"),
    *("MultiRoom-N6", "MultiRoom-N12-S10"),
    *("ObstructedMaze-1Dlh", "ObstructedMaze-2Dlh", "ObstructedMaze-2Dlhb"),
)

ACTIONS = ("left", "right", "forward", "pickup", "drop", "toggle", "done")

_MINIGRID = re.compile(r"MiniGrid-(.+)-v(\d+)")
# The first version of this one has six rooms; the paper's, like the second, has four.
_RENAMED = {
    "MiniGrid-MultiRoom-N4-S5-v0": "MultiRoom-N6-S5",
    "MiniGrid-MultiRoom-N4-S5-v1": "MultiRoom-N4-S5",
}


def our_name(name: str) -> str:
    """Return our name of MiniGrid's environment `MiniGrid-Unlock-v0`; other names are unchanged.

    A time limit stays: `MiniGrid-Unlock-v0?max_steps=50` is `Unlock?max_steps=50`.
    """
    name, mark, limit = name.partition("?")
    if name in _RENAMED or not (found := _MINIGRID.fullmatch(name)):
        return _RENAMED.get(name, name) + mark + limit
    return (found[1] if found[2] == "0" else f"{found[1]}-v{found[2]}") + mark + limit


def with_time_limit(name: str, max_steps: int | None) -> str:
    """Return the name of an environment with another time limit (None: its own)."""
    return name if max_steps is None else f"{name}?max_steps={max_steps}"


def register() -> None:
    """Register the environments with gymnasium: `cbet_jax/Unlock-v0` is `MiniGrid-Unlock-v0`.

    They are made by `gymnasium.make_vec`, which passes options on to `envs.minigrid.gym_vector`.
    """
    import gymnasium

    for name in (*NAMES, "MultiRoom-N4-S5-v1"):
        full = name if re.search(r"-v\d$", name) else f"{name}-v0"
        options = {"name": f"MiniGrid-{full}"}
        made = "envs.minigrid:gym_vector"
        gymnasium.register(f"cbet_jax/{full}", vector_entry_point=made, kwargs=options)
