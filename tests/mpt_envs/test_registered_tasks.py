"""Every registered task, and every view of one of them, passes every test of the kit."""

from __future__ import annotations

from typing import Any

import pytest

import mpt_envs
from mpt_envs.testing import EnvContractTests, TaskContractTests, VectorContractTests

FLAGSHIP = "crafting/iron-pickaxe-v0"


# A class per id, at the top level of this file so that a fresh process finds it.
for _id, _spec in mpt_envs.registry.items():
    if _spec.needs or _spec.domain == "toys":
        continue  # tested where its data are, or its class is
    _name = "".join(part.title() for part in _id.replace("/", "-").split("-"))
    _body = {"id": _id, "__module__": __name__, "seeds": (0,), "snapshot_pairs": 6}
    globals()[f"Test{_name}"] = type(f"Test{_name}", (TaskContractTests,), _body)
    if _spec.batch is not None:
        globals()[f"Test{_name}Vector"] = type(
            f"Test{_name}Vector",
            (VectorContractTests,),
            {"id": _id, "__module__": __name__, "num_envs": 4},
        )


class FlagshipView(EnvContractTests):
    """The game with some keywords of `make`."""

    seeds = (3,)
    snapshot_pairs = 8
    pettingzoo_cycles = 60
    options: dict[str, Any] = {}  # noqa: RUF012

    def make_env(self) -> Any:
        return mpt_envs.make(FLAGSHIP, **self.options)


_VIEWS: dict[str, dict[str, Any]] = {
    "Population": {"agents": 6, "dropout": 0.2, "bid_levels": "crowded"},
    "Strict": {"on_illegal": "raise", "max_turns": 40},
    "OneAgent": {"one_agent": True},
    "Homogeneous": {"homogeneous": True, "agents": 6, "dropout": 0.2},
    "Text": {"observation": "text", "action": "text", "max_turns": 40},
    "Reader": {"observation": "text", "dropout": 0.2, "max_turns": 40},
    "Image": {"observation": "image", "max_turns": 12},
}
for _name, _options in _VIEWS.items():
    globals()[f"Test{_name}"] = type(
        f"Test{_name}", (FlagshipView,), {"options": _options, "__module__": __name__}
    )
for _name, _options in {
    "PopulationVector": {"agents": 9, "dropout": 0.2, "bid_levels": "crowded", "max_turns": 30},
    "OneAgentVector": {"one_agent": True},
}.items():
    globals()[f"Test{_name}"] = type(
        f"Test{_name}",
        (VectorContractTests,),
        {"id": FLAGSHIP, "options": _options, "__module__": __name__},
    )


class ManySnapshots(FlagshipView):
    """A thousand pairs of a state and a continuation, for the two tests below alone."""

    seeds = (0, 1, 2, 3, 4)
    snapshot_pairs = 1000


@pytest.mark.parametrize(
    "test", ["test_snapshot_restores_exactly", "test_snapshot_restores_in_a_fresh_process"]
)
def test_a_thousand_snapshots(test: str) -> None:
    getattr(ManySnapshots(), test)()


def test_every_goal_is_registered() -> None:
    from mpt_envs.crafting.world.goals import GOAL_NAMES

    registered = {spec.name for spec in mpt_envs.registry.values() if spec.domain == "crafting"}
    assert registered == set(GOAL_NAMES)


def test_ids_and_task_ids_agree() -> None:
    for id, spec in mpt_envs.registry.items():  # noqa: A001
        if spec.needs:
            continue
        assert mpt_envs.make_task(id).task_id == spec.id
