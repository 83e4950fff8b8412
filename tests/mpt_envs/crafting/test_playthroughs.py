"""Golden playthroughs: the committed files are what is played now, and the tool notices changes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mpt_envs
from mpt_envs import playthroughs
from mpt_envs.crafting.world import facts, goals
from mpt_envs.playthroughs import FOLDER, Player, compare, file_name, main, playthrough, write
from tests.toys import RelayTask
from wrappers.task import TurnTask

ROOT = Path(__file__).resolve().parents[3]
IDS = [f"crafting/{goal}-v0" for goal in goals.GOAL_NAMES]
CASES = [(task_id, player) for task_id in IDS for player in playthroughs.PLAYERS]


@pytest.mark.parametrize(("task_id", "player"), CASES)
def test_played_as_committed(task_id: str, player: Player) -> None:
    path = ROOT / FOLDER / file_name(task_id, player)
    assert path.is_file(), f"{path.name} is missing: python -m mpt_envs.playthroughs --write"
    expected = path.read_bytes().decode("utf-8")
    actual = playthrough(task_id, player)
    if actual == expected:
        return
    lines = zip(expected.splitlines(), actual.splitlines(), strict=False)
    line, (old, new) = next(
        ((n, pair) for n, pair in enumerate(lines, 1) if pair[0] != pair[1]), (0, ("", ""))
    )
    pytest.fail(
        f"{path.name} is no longer what is played; first difference in line {line}:\n"
        f"  committed: {old}\n  now:       {new}\n"
        "If a rule, a text or the observation was meant to change, write the files anew with\n"
        "  python -m mpt_envs.playthroughs --write\n"
        "and read their diff before committing it."
    )


def test_no_file_is_left_over() -> None:
    names = {file_name(task_id, player) for task_id, player in CASES}
    for path in (ROOT / FOLDER).glob("crafting_*"):
        assert path.name in names, f"{path.name} belongs to no task"
    assert set(IDS) <= set(playthroughs.own_ids())


def test_a_file_tells_the_whole_episode() -> None:
    """The rewards of the turns add up to the return, and every turn is there once."""
    for task_id, player in CASES[:4]:
        content = playthrough(task_id, player)
        metrics = dict(re.findall(r"^(\w+): (\S+)$", content.split("== metrics ==")[1], re.M))
        rewards = [float(r) for r in re.findall(r"^  reward (\S+)$", content, re.M)]
        assert sum(rewards) == float(metrics["return"])
        turns = [int(t) for t in re.findall(r"^turn (\d+): ", content, re.M)]
        assert turns == list(range(int(metrics["turns"])))
        states = re.findall(r"state ([0-9a-f]{12}), text", content)
        assert len(set(states)) == len(turns) + 1
        assert ("terminated ==" in content) != ("truncated ==" in content)
        assert content.isascii() and "\x1b" not in content
        assert content.endswith("\n") and not re.search(r"[ \t]$", content, re.M)


def test_the_expert_reaches_the_goal_and_tells_how() -> None:
    content = playthrough("crafting/stone-pickaxe-v0", "expert")
    assert "success: 1\n" in content
    for item in goals.path(facts.I_STONE_PICKAXE):
        assert f"milestone {facts.ITEM_NAMES[item]} (+{goals.value(item)})" in content


def test_seeds_and_players_differ() -> None:
    played = {
        playthrough("crafting/crafting-table-v0", player, seed)
        for player in playthroughs.PLAYERS
        for seed in (1, 2)
    }
    assert len(played) == 4
    with pytest.raises(ValueError, match="player must be one of expert, random"):
        playthrough("crafting/crafting-table-v0", "nobody")  # type: ignore[arg-type]


def test_played_alike_in_another_process(tmp_path: Path) -> None:
    task_id = "crafting/wooden-pickaxe-v0"
    code = (
        "from pathlib import Path; from mpt_envs.playthroughs import write; "
        f"write(Path({str(tmp_path)!r}), [{task_id!r}])"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    for player in playthroughs.PLAYERS:
        content = (tmp_path / file_name(task_id, player)).read_bytes().decode()
        assert content == playthrough(task_id, player)


# --- the tool -----------------------------------------------------------------------------------
def test_write_then_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task_id = "crafting/crafting-table-v0"
    folder = tmp_path / "new" / "folder"
    arguments = [task_id, "--folder", str(folder)]
    assert main(arguments) == 1
    assert "is missing" in capsys.readouterr().out
    assert main([*arguments, "--write"]) == 0
    assert capsys.readouterr().out.count("wrote ") == 2
    assert main([*arguments, "--write"]) == 0
    assert capsys.readouterr().out == "nothing changed\n"
    assert main(arguments) == 0
    assert capsys.readouterr().out == ""


def test_a_changed_rule_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A different text, reward or observation each show in the comparison."""
    task_id = "crafting/crafting-table-v0"
    write(tmp_path, [task_id])
    assert compare(tmp_path, [task_id]) == {}

    from mpt_envs.crafting.task import CraftingTask
    from mpt_envs.crafting.views import text

    with monkeypatch.context() as patch:
        patch.setitem(text.ACTION_HELP, "wait", "do nothing")
        found = compare(tmp_path, [task_id])
        assert set(found) == {file_name(task_id, player) for player in playthroughs.PLAYERS}
        assert "+0. wait: do nothing" in next(iter(found.values()))
    with monkeypatch.context() as patch:
        observe = CraftingTask.observe
        patch.setattr(CraftingTask, "observe", lambda self, agent: observe(self, agent) * 0.5)
        assert compare(tmp_path, [task_id])
    with monkeypatch.context() as patch:
        act = CraftingTask.act

        def generous(self: CraftingTask, agent: str, action: int) -> object:
            result = act(self, agent, action)
            return result._replace(reward=result.reward + 1)

        patch.setattr(CraftingTask, "act", generous)
        found = compare(tmp_path, [task_id])
        assert "+  reward 2" in found[file_name(task_id, "expert")]
    assert compare(tmp_path, [task_id]) == {}


def test_an_unknown_task_lists_close_matches(tmp_path: Path) -> None:
    with pytest.raises(mpt_envs.UnknownTaskError, match="crafting/torch-v0"):
        main(["crafting/torhc-v0", "--folder", str(tmp_path)])


def test_a_task_that_offers_only_what_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    """No words for events and no expert: random play alone, told by its digests."""

    class BareTask(RelayTask):
        expert_action = TurnTask.expert_action

    monkeypatch.setattr(playthroughs, "make", lambda task_id: mpt_envs.as_env(BareTask()))
    assert playthroughs.players("toys/relay-v0") == ["random"]
    content = playthrough("toys/relay-v0", "random")
    assert content == playthrough("toys/relay-v0", "random")
    assert "bucket 0/3, tank 0/9" in content
    assert re.search(r"^turn 0: filler_0 \S+, carrier_0 \S+$", content, re.M)


def test_only_the_projects_own_tasks_are_golden() -> None:
    assert "toys/relay-v0" not in playthroughs.own_ids()
    assert playthroughs.own_ids() == sorted(playthroughs.own_ids())
