"""How the tests play: tasks on the double, and the scripted expert through them."""

from __future__ import annotations

from typing import Any

from mpt_envs.crafting.backends.minestudio.task import MineStudioTask
from tests.mpt_envs.crafting.minestudio.double import DoubleSim


def double_task(goal: str = "crafting-table", mode: str = "command", **keywords: Any) -> Any:
    """A task on the double, not yet reset."""
    return MineStudioTask(goal, crafting_mode=mode, simulator=DoubleSim, **keywords)


def sim_of(task: Any) -> DoubleSim:
    """The double behind a task that was reset."""
    sim = task._engine._sim
    assert isinstance(sim, DoubleSim)
    return sim


def expert_turn(task: Any) -> tuple[str, float, bool]:
    """One turn of the expert: what was done, its reward, and whether the episode is over."""
    bids = [task.expert_bid(agent) for agent in task.possible_agents]
    best = max(range(len(bids)), key=bids.__getitem__)
    if bids[best] == 0:
        result = task.skip()
        return "skip", result.reward, result.terminated
    agent = task.possible_agents[best]
    action = task.expert_action(agent)
    result = task.act(agent, action)
    return task.action_names(agent)[action], result.reward, result.terminated


def play_expert(task: Any, turns: int) -> tuple[list[str], float]:
    """Play the expert for some turns or to the end: what it did, and the return."""
    names, total = [], 0.0
    for _ in range(turns):
        name, reward, over = expert_turn(task)
        names.append(name)
        total += reward
        if over:
            break
    return names, total
