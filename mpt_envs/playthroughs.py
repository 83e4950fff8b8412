"""Golden playthroughs: whole episodes as text files, so that a change of any rule shows as a diff.

For each task there is an episode of the scripted expert and one of random legal play. A file holds
what a reader wants (who bid what, who acted, what happened, the reward, the metrics, the first and
the last picture) and, a line for each turn, digests of what a reader does not want in full: the
state, every agent's text, every agent's observation.

::

    python -m mpt_envs.playthroughs            # compare with the files, show the differences
    python -m mpt_envs.playthroughs --write    # write the files anew; then read the diff

The idea is that of OpenSpiel's playthroughs.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol, get_args, runtime_checkable

import numpy as np

from mpt_envs.make import make
from mpt_envs.registry import registry
from wrappers.bid_then_act import BidThenActEnv
from wrappers.rng import STREAM_POLICY_ACTION, STREAM_POLICY_BID, as_key, hash4

Player = Literal["expert", "random"]
PLAYERS: Final[tuple[Player, ...]] = get_args(Player)

#: Where the files of this project lie, from its root.
FOLDER: Final = Path("tests/playthroughs")
SEED: Final = 6  # a world in which the expert reaches every goal

_ESCAPES: Final = re.compile(r"\x1b\[[0-9;]*m")


@runtime_checkable
class Narrator(Protocol):
    """A task that can say in words what happened."""

    def narrate(self) -> Sequence[str]:
        """What happened in the last turn, in a few words each."""
        ...


def own_ids() -> list[str]:
    """Ids of the tasks that this project registers itself (not of plugins)."""
    return [
        name for name, s in registry.items() if str(s.task).startswith("mpt_envs.") and not s.needs
    ]


def file_name(id: str, player: Player) -> str:
    """Name of the file of one playthrough."""
    return f"{id.replace('/', '_')}.{player}.txt"


def players(id: str) -> list[Player]:
    """Who can play a task: the expert only where there is one."""
    env = make(id)
    try:
        return [p for p in PLAYERS if p != "expert" or env.task.has_expert]
    finally:
        env.close()


def playthrough(id: str, player: Player, seed: int = SEED) -> str:
    """Play one episode and describe it.

    Args:
        id: of a task.
        player: "expert" bids and acts as the task's expert says (the nearest bid level, of two the
            lower), "random" bids and acts uniformly among what is legal.
        seed: of the episode; it also fixes the random player.
    """
    if player not in PLAYERS:
        raise ValueError(f"player must be one of {', '.join(PLAYERS)}, got {player!r}")
    env = make(id)
    try:
        env.reset(seed=seed)
        return "\n".join(_lines(env, id, player, seed)) + "\n"
    finally:
        env.close()


def _lines(env: BidThenActEnv, id: str, player: Player, seed: int) -> Iterator[str]:
    task = env.task
    yield f"# {id}, played by {player}, seed {seed}"
    yield "# Written by: python -m mpt_envs.playthroughs --write"
    yield f"agents: {', '.join(env.possible_agents)}"
    yield f"bid levels: {', '.join(f'{level:g}' for level in env.bid_levels)}"
    yield f"turns: at most {env.max_turns}"
    for agent in env.possible_agents:
        yield f"\n== what {agent} is told once =="
        yield task.profile(agent)
        yield f"\n== what {agent} reads in the first turn =="
        yield task.prompt(agent, "bid")
    yield "\n== the beginning =="
    yield from _picture(env)
    yield f"\n{_digests(env)}"
    while env.agents and not _over(env):
        yield ""
        turn = env.turn
        while env.phase == "bid" and env.turn == turn and not _over(env):
            env.step(_bid(env, player))
        action = ""
        if env.turn == turn and env.phase == "act":
            agent = env.agent_selection
            choice = _act(env, player)
            action = task.action_names(agent)[choice]
            env.step(len(env.bid_levels) + choice)
        yield from _turn(env, turn, action)
    how = "terminated" if any(env.terminations.values()) else "truncated"
    yield f"\n== the end: {how} =="
    yield from _picture(env)
    yield "\n== metrics =="
    for name, value in env.metrics().items():
        yield f"{name}: {value:.6g}"


def _over(env: BidThenActEnv) -> bool:
    return any(env.terminations.values()) or any(env.truncations.values())


def _turn(env: BidThenActEnv, turn: int, action: str) -> Iterator[str]:
    """One finished turn."""
    auction, result = env.last_auction, env.last_result
    assert auction is not None and auction.turn == turn and result is not None
    bids = ", ".join(
        f"{agent} {bid:g}" for agent, bid in zip(env.possible_agents, auction.bids, strict=True)
    )
    yield f"turn {turn}: {bids}"
    if auction.winner is None:
        yield "  nobody acts"
    else:
        yield f"  {auction.winner}: {action} (runner-up: {auction.runner_up or 'none'})"
    if isinstance(env.task, Narrator):
        told = env.task.narrate()
        if told:
            yield f"  {'; '.join(told)}"
    if result.reward:
        yield f"  reward {result.reward:g}"
    yield f"  {_digests(env)}"


def _digests(env: BidThenActEnv) -> str:
    """Short digests of the state, of all texts and of all observations and masks."""
    text, vector = hashlib.blake2b(digest_size=6), hashlib.blake2b(digest_size=6)
    for agent in env.possible_agents:
        text.update(env.task.prompt(agent, "bid").encode())
        vector.update(env.task.observe(agent).tobytes())
        vector.update(env.task.action_mask(agent).tobytes())
    state = env.task.snapshot().digest[:12]
    return f"state {state}, text {text.hexdigest()}, observation {vector.hexdigest()}"


def _picture(env: BidThenActEnv) -> Iterator[str]:
    """The state as characters, without colours."""
    if "ansi" in env.task.render_modes:
        picture = _ESCAPES.sub("", str(env.render_as("ansi")))
        yield from (line.rstrip() for line in picture.splitlines())


def _bid(env: BidThenActEnv, player: Player) -> int:
    """The selected agent's bid level."""
    agent = env.agent_selection
    legal = np.flatnonzero(env.observe(agent)["action_mask"][: len(env.bid_levels)])
    if player == "random":
        return int(legal[_draw(env, STREAM_POLICY_BID, agent) % len(legal)])
    wanted = env.task.expert_bid(agent)
    return int(min(legal, key=lambda level: (abs(env.bid_levels[level] - wanted), level)))


def _act(env: BidThenActEnv, player: Player) -> int:
    """The selected agent's action, an index into the task's actions."""
    agent = env.agent_selection
    if player == "random":
        legal = np.flatnonzero(env.task.action_mask(agent))
        return int(legal[_draw(env, STREAM_POLICY_ACTION, agent) % len(legal)])
    return int(env.task.expert_action(agent))


def _draw(env: BidThenActEnv, stream: np.uint64, agent: str) -> int:
    index = env.possible_agents.index(agent)
    return int(hash4(as_key(env.random_key), np.uint64(env.turn), stream, np.uint64(index)))


def compare(folder: Path, ids: Sequence[str] | None = None) -> dict[str, str]:
    """Differences between the files of a folder and what is played now.

    Args:
        folder: of the files.
        ids: tasks; None means all of this project.

    Returns:
        A readable difference by file name; empty if everything is as it was.
    """
    found = {}
    for task_id in own_ids() if ids is None else ids:
        for player in players(task_id):
            name = file_name(task_id, player)
            path = folder / name
            if not path.is_file():
                found[name] = f"--- {path} is missing"
                continue
            old = path.read_text(encoding="utf-8")
            new = playthrough(task_id, player)
            if old != new:
                diff = difflib.unified_diff(
                    old.splitlines(), new.splitlines(), f"{name}, the file", "now", "", "", 1, ""
                )
                found[name] = "\n".join(diff)
    return found


def write(folder: Path, ids: Sequence[str] | None = None) -> list[Path]:
    """Write the files anew; returns those that changed."""
    changed = []
    folder.mkdir(parents=True, exist_ok=True)
    for task_id in own_ids() if ids is None else ids:
        for player in players(task_id):
            path = folder / file_name(task_id, player)
            text = playthrough(task_id, player)
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8", newline="\n")
                changed.append(path)
    return changed


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status: 1 if a comparison found a difference."""
    parser = argparse.ArgumentParser(
        prog="python -m mpt_envs.playthroughs",
        description="Compare golden playthroughs with what is played now, or write them anew.",
    )
    parser.add_argument("ids", nargs="*", help="tasks; default: all of this project")
    parser.add_argument("--write", action="store_true", help="write the files")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"default: {FOLDER}")
    options = parser.parse_args(arguments)
    ids = options.ids or None
    if options.write:
        changed = write(options.folder, ids)
        for path in changed:
            print(f"wrote {path}")
        if not changed:
            print("nothing changed")
        return 0
    differences = compare(options.folder, ids)
    for difference in differences.values():
        print(difference)
    if differences:
        print(
            f"\n{len(differences)} playthroughs differ. If that is meant, write them with --write"
        )
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
