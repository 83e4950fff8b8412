"""Domains of the market game, made by name.

::

    import mpt_envs

    env = mpt_envs.make("crafting/iron-pickaxe-v0")
    env.reset(seed=0)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        over = terminated or truncated
        env.step(None if over else env.action_space(agent).sample(info["action_mask"]))

`mpt_envs.testing` holds the tests that every environment must pass; it is imported on demand.
"""

from mpt_envs import foreign as _foreign  # noqa: F401  (first: it says what is wrong)
from mpt_envs.make import as_env, make, make_task
from mpt_envs.registry import (
    Backend,
    EnvSpec,
    MissingBackendError,
    UnknownTaskError,
    register,
    registry,
    spec,
)

__all__ = [
    "Backend",
    "EnvSpec",
    "MissingBackendError",
    "UnknownTaskError",
    "as_env",
    "make",
    "make_task",
    "register",
    "registry",
    "spec",
]

for _goal, _description in {
    "iron-pickaxe": "Make an iron pickaxe from nothing: wood, stone, coal, iron, a furnace.",
    "stone-pickaxe": "Make a stone pickaxe from nothing.",
    "wooden-pickaxe": "Make a wooden pickaxe from nothing.",
    "crafting-table": "Make a crafting table from nothing.",
    "furnace": "Make a furnace from nothing.",
    "torch": "Make torches from coal and sticks.",
    "stone-bricks": "Smelt cobblestone and craft stone bricks.",
}.items():
    register(
        f"crafting/{_goal}-v0",
        task="mpt_envs.crafting:make_task",
        batch="mpt_envs.crafting:make_batch",
        backends={
            "minetest": Backend("mpt_envs.crafting.backends.minetest:make_task"),
            "minestudio": Backend("mpt_envs.crafting.backends.minestudio:make_task"),
        },
        kwargs={"goal": _goal},
        description=_description,
    )

register(
    "research/multihop-v0",
    task="mpt_envs.research:make_task",
    batch="mpt_envs.research:make_batch",
    description="Answer 2- to 4-hop questions from a fictional encyclopaedia, or your own corpus.",
)

register(
    "navigation/floorplan-v0",
    task="mpt_envs.navigation:make_floorplan_task",
    batch="mpt_envs.navigation:make_floorplan_batch",
    description="Follow an instruction in words through a generated house; turn, walk, stop.",
)

register(
    "navigation/r2r-v0",
    task="mpt_envs.navigation.data.r2r:make_task",
    batch="mpt_envs.navigation.data.r2r:make_batch",
    backends={
        "connectivity": Backend(
            "mpt_envs.navigation.data.r2r:make_task", "mpt_envs.navigation.data.r2r:make_batch"
        ),
        "habitat": Backend(
            "mpt_envs.navigation.backends.habitat:make_task",
            how_to_get="Install it with `conda install habitat-sim headless -c conda-forge -c "
            "aihabitat` (it is not on the package index).",
        ),
    },
    description="Follow a real R2R-CE instruction through a scanned building; turn, walk, stop.",
    needs="the files of R2R-CE (data=, or MPT_R2R_DATA)",
)
