"""The text side of crafting: what is said is true, complete, short, and can be answered."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mpt_envs.crafting.rules.perception import perceive
from mpt_envs.crafting.task import CraftingTask
from mpt_envs.crafting.views import text
from mpt_envs.crafting.world import facts, goals
from mpt_envs.crafting.world import layout as at
from wrappers.rng import as_key, hash4
from wrappers.task import ParseError

ROLES = range(len(facts.ROLES))


def states(seed: int, goal: str = "iron-pickaxe", expert: bool = False) -> list[np.ndarray]:
    """The records of an episode: of the expert, or of random legal play."""
    task = CraftingTask(goal)
    task.reset(seed)
    found = [task.record.copy()]
    for turn in range(task.default_max_turns):
        if expert:
            agent = max(task.possible_agents, key=task.expert_bid)
            action = task.expert_action(agent)
        else:
            draws = [int(hash4(as_key(seed), turn, 5, k) >> np.uint64(40)) for k in range(2)]
            agent = task.possible_agents[draws[0] % 3]
            legal = np.flatnonzero(task.action_mask(agent))
            action = int(legal[draws[1] % len(legal)])
        over = task.act(agent, action).terminated
        found.append(task.record.copy())
        if over:
            break
    return found


@pytest.fixture(scope="module")
def episode() -> list[np.ndarray]:
    """All states of an expert's and of a random episode."""
    return states(3, expert=True) + states(4)


def mask_of(record: np.ndarray, role: int) -> np.ndarray:
    bits = int(at.scalars(record)[at.MASKS + role])
    return np.array([bits >> a & 1 for a in range(facts.N_ACTIONS[role])], np.int8)


def fresh(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A new world's record and its scalars."""
    task = CraftingTask()
    task.reset(seed)
    return task.record, at.scalars(task.record)


# --- completeness -------------------------------------------------------------------------------
def test_every_action_is_explained() -> None:
    actions = {action for role in facts.ROLES for action in facts.ACTIONS[role]}
    assert set(text.ACTION_HELP) == actions
    assert set(text.ACTION_NEEDS) == actions - {"wait"}


def test_recipes_are_those_of_the_facts() -> None:
    """The words of a recipe and the numbers of `facts` say the same."""
    action_of = {
        facts.I_PLANKS: "craft_planks",
        facts.I_STICK: "craft_sticks",
        facts.I_TABLE: "craft_table",
        facts.I_WOODEN_PICKAXE: "craft_wooden_pickaxe",
        facts.I_STONE_PICKAXE: "craft_stone_pickaxe",
        facts.I_IRON_PICKAXE: "craft_iron_pickaxe",
        facts.I_FURNACE: "craft_furnace",
        facts.I_TORCH: "craft_torch",
        facts.I_STONE_BRICKS: "craft_stone_bricks",
    }
    assert set(action_of) == set(facts.RECIPES)
    for item, recipe in facts.RECIPES.items():
        for words in (text.ACTION_HELP[action_of[item]], text.ACTION_NEEDS[action_of[item]]):
            for ingredient, amount in recipe.ingredients:
                name = facts.ITEM_NAMES[ingredient].replace("_", " ")
                assert re.search(rf"\b{amount} {name}", words), (item, words)
            if item != facts.I_TABLE:
                assert ("table" in words) == recipe.table
        if recipe.makes > 1:
            assert f"-> {recipe.makes} " in text.ACTION_HELP[action_of[item]]


def test_every_event_has_words() -> None:
    for event in range(1, len(at.EVENT_NAMES)):
        assert text.event_words(event, 1, 2), at.EVENT_NAMES[event]
    assert text.event_words(at.EVENT_NONE, 0, 0) == ""
    assert text.event_words(at.EVENT_GOT, facts.I_IRON_ORE, 2) == "got 2 iron_ore"
    assert text.event_words(at.EVENT_SMELTING, facts.I_LOG, 0) == "added fuel to the furnace"
    assert text.event_words(at.EVENT_BLOCKED, 5, 0) == "found no way to the furnace"


# --- profile ------------------------------------------------------------------------------------
@pytest.mark.parametrize("goal", range(len(goals.GOALS)), ids=goals.GOAL_NAMES)
@pytest.mark.parametrize("role", ROLES, ids=facts.ROLES)
def test_profile(role: int, goal: int) -> None:
    words = text.profile(role, goal)
    assert words.startswith(f"You are the {facts.ROLES[role]} ")
    for item in goals.path(goals.GOALS[goal].item):
        assert f"{facts.ITEM_NAMES[item]} {goals.value(item)}" in words
    listed = re.findall(r"^- (\w+): ", words, re.MULTILINE)
    assert tuple(listed) == facts.ACTIONS[facts.ROLES[role]]
    assert len(words) < 3000


# --- prompt -------------------------------------------------------------------------------------
@pytest.mark.parametrize("role", ROLES, ids=facts.ROLES)
def test_prompt_lists_exactly_the_legal_actions(role: int, episode: list[np.ndarray]) -> None:
    for record in episode:
        words = text.prompt(record, role)
        listed = re.findall(r"^(\d+)\. (\w+): \S", words, re.MULTILINE)
        names = facts.ACTIONS[facts.ROLES[role]]
        legal = [(str(i), names[i]) for i in np.flatnonzero(mask_of(record, role))]
        assert listed == legal


def test_prompt_is_short_and_plain(episode: list[np.ndarray]) -> None:
    longest = 0
    for record in episode:
        for role in ROLES:
            words = text.prompt(record, role)
            assert words.isascii()
            assert "None" not in words and "nan" not in words and "  " not in words
            longest = max(longest, len(words))
    # A token is about four characters; a few hundred of them are allowed.
    assert 600 < longest < 2400


def test_prompt_changes_nothing(episode: list[np.ndarray]) -> None:
    record = episode[10].copy()
    for role in ROLES:
        text.prompt(record, role)
    assert np.array_equal(record, episode[10])
    record.flags.writeable = False
    text.prompt(record, 0)


def test_phases_differ_only_in_how_the_actions_are_called(episode: list[np.ndarray]) -> None:
    act, bid = text.prompt(episode[5], 0, "act"), text.prompt(episode[5], 0, "bid")
    assert act.replace("Legal actions:", "If you win this turn you can:") == bid != act


def test_prompts_of_different_states_differ(episode: list[np.ndarray]) -> None:
    """Each state of an episode reads differently: time passes in every turn."""
    first = [text.prompt(record, 0) for record in episode[:40]]
    assert len(set(first)) == 40


def test_prompt_says_what_the_record_holds(episode: list[np.ndarray]) -> None:
    for record in episode:
        s = at.scalars(record)
        words = text.prompt(record, 2)
        assert f"Tick {s[at.TICK]} of {s[at.BUDGET]}, " in words
        assert f"x {s[at.X]}, y {s[at.Y]}, z {s[at.Z]}, " in words
        assert f"Score {s[at.SCORE]} of " in words
        has = re.search(r"^Has: (.*)\.$", words, re.MULTILINE)
        assert has is not None
        held = re.findall(r"(\w+) (\d+)(?: \(\d+ uses left\))?(?:, |$)", has[1])
        expected = [
            (name, str(s[at.INVENTORY + i]))
            for i, name in enumerate(facts.ITEM_NAMES)
            if s[at.INVENTORY + i]
        ]
        assert held == expected
        done = re.search(r"Done: ([^.]*)\.", words)
        assert done is not None
        path = goals.path(goals.GOALS[s[at.GOAL]].item)
        seen = [facts.ITEM_NAMES[i] for i in path if s[at.SEEN] >> i & 1]
        assert done[1] == (", ".join(seen) or "nothing")


def test_distances_and_bearings_lead_to_the_target(episode: list[np.ndarray]) -> None:
    """Whoever follows the words of a target finds it: the right octant, height and distance."""
    checked = 0
    for record in episode:
        s = at.scalars(record)
        sees = re.search(r"^Sees: (.*)\.$", text.prompt(record, 1), re.MULTILINE)
        assert sees is not None
        parts = sees[1].split("; ")
        assert len(parts) == 4
        for kind, part in enumerate(parts):
            cell = int(s[at.TARGET_CELL + kind])
            name = at.TARGET_NAMES[kind]
            if cell == 0:
                assert part.startswith(f"no {name}")
                continue
            checked += 1
            match = re.fullmatch(rf"{name} ([\d.]+) (.*)", part)
            assert match is not None, part
            x, y, z = at.position(cell)
            dx, dy, dz = x - int(s[at.X]), y - int(s[at.Y]), z - int(s[at.Z])
            eyes = np.hypot(np.hypot(dx, dz), dy + 0.5 - facts.EYE_HEIGHT)
            assert abs(eyes - float(match[1])) < 0.11
            assert ("north" in match[2]) <= (dz < 0)
            assert ("south" in match[2]) <= (dz > 0)
            assert ("east" in match[2]) <= (dx > 0)
            assert ("west" in match[2]) <= (dx < 0)
            assert ("down" in match[2]) == (dy < 0 and (dx, dz) != (0, 0))
    assert checked > 100


def test_bearing() -> None:
    assert text.bearing(0, 0, -5) == "north"
    assert text.bearing(3, 0, -3) == "north-east"
    assert text.bearing(9, 1, 2) == "east"
    assert text.bearing(-4, 3, 5) == "south-west 3 up"
    assert text.bearing(0, -2, 7) == "south 2 down"
    assert text.bearing(0, 3, 0) == "overhead"
    assert text.bearing(0, -1, 0) == "underfoot"
    for dx in range(-9, 10):
        for dz in range(-9, 10):
            assert text.bearing(dx, 0, dz)


def test_ways() -> None:
    """What is told of a direction is the block that is there."""
    record, s = fresh()
    b = at.blocks(record)
    x, y, z = (int(s[i]) for i in (at.X, at.Y, at.Z))
    b[x - 1 : x + 2, z - 1 : z + 2, y : y + 3] = facts.AIR
    b[x, z - 1, y : y + 3] = facts.STONE
    b[x + 1, z, y + 1] = facts.LEAVES
    b[x, z + 1, : y + 2] = facts.AIR
    b[x - 1, z, y - 1 : y + 3] = facts.WATER
    perceive(s, record)
    ways = text.state_lines(record)[2]
    assert "north closed by stone," in ways
    assert "east closed by leaves," in ways
    assert "south a drop," in ways
    assert "west deep water." in ways


def test_below_the_ground_and_wounded() -> None:
    record, s = fresh()
    s[at.Y] -= 4
    s[at.WOUND] = 3 * facts.REGENERATION_TICKS - 10
    b = at.blocks(record)
    b[int(s[at.X]), int(s[at.Z]), int(s[at.Y]) : int(s[at.Y]) + 2] = facts.AIR
    perceive(s, record)
    body = text.state_lines(record)[1]
    assert "4 below the ground, under cover" in body
    assert body.endswith("Health 17 of 20.")


def test_stations_and_what_is_in_the_furnace() -> None:
    record, s = fresh()
    x, y, z = (int(s[i]) for i in (at.X, at.Y, at.Z))
    assert "no table placed; no furnace placed" in text.prompt(record, 2)
    b = at.blocks(record)
    b[x + 1, z, y] = facts.FURNACE
    s[at.FURNACE_CELL] = at.cell_of(x + 1, y, z)
    s[at.FURNACE_INPUT], s[at.FURNACE_INPUT_COUNT] = facts.I_IRON_ORE, 2
    s[at.FURNACE_FUEL], s[at.FURNACE_FUEL_COUNT] = facts.I_COAL, 1
    s[at.FURNACE_BURN] = 150
    perceive(s, record)
    words = text.prompt(record, 2)
    expected = "furnace in reach (iron_ore 2 to smelt, coal 1 as fuel, burning for 150 ticks)"
    assert expected in words
    s[at.FURNACE_NEAR] = at.NEAR_NONE
    words = text.prompt(record, 2)
    assert "furnace east, out of sight." in words
    assert "iron_ore 2 to smelt" not in words  # what is not seen is not told


def test_recent_events_are_the_last_ones() -> None:
    task = CraftingTask()
    task.reset(0)
    assert "Recent: nothing yet." in task.prompt("logger_0", "act")
    task.act("logger_0", facts.WAIT)
    task.skip()
    recent = text.state_lines(task.record)[-1]
    assert recent == "Recent: turn 1 waited 20 ticks; turn 2 nobody acted."
    task.act("smith_0", facts.WAIT)
    assert text.turn_events(task.record, 2) == ["waited 20 ticks"]
    assert text.state_lines(task.record)[-1].endswith("the last action was smith wait.")
    for _ in range(at.N_EVENTS):
        task.skip()
    assert "waited" not in text.state_lines(task.record)[-1]


def test_the_end_is_told() -> None:
    task = CraftingTask("crafting-table")
    task.reset(0)
    while not task.act(
        agent := max(task.possible_agents, key=task.expert_bid), task.expert_action(agent)
    ).terminated:
        pass
    over = task.prompt("smith_0", "act").splitlines()[0]
    assert re.search(r"The episode is over: (goal reached|out of time)\.$", over)


# --- parse --------------------------------------------------------------------------------------
def spellings(name: str, index: int) -> list[str]:
    """Ways in which a model may name an action."""
    return [
        name,
        name.upper(),
        name.replace("_", " ").title(),
        name.replace("_", "-"),
        f'"{name}"',
        f"```\n{name}\n```",
        f'{{"action": "{name}"}}',
        f"Action: {name}",
        f"I will {name.replace('_', ' ')}.",
        str(index),
        f"{index}. {name}",
    ]


@pytest.mark.parametrize("role", ROLES, ids=facts.ROLES)
def test_round_trip_of_every_legal_action(role: int, episode: list[np.ndarray]) -> None:
    seen = set()
    for record in episode:
        mask = mask_of(record, role)
        for index in map(int, np.flatnonzero(mask)):
            name = facts.ACTIONS[facts.ROLES[role]][index]
            # All spellings when an action is first seen, then its name.
            texts = spellings(name, index) if index not in seen else [name]
            seen.add(index)
            for answer in texts:
                assert text.parse(role, answer, mask) == index, answer
    assert len(seen) > 4


@pytest.mark.parametrize("role", ROLES, ids=facts.ROLES)
def test_what_is_listed_can_be_answered(role: int, episode: list[np.ndarray]) -> None:
    """Copying any line of the list of actions is an answer."""
    for record in episode[::7]:
        for line in text.prompt(record, role).splitlines():
            listed = re.match(r"(\d+)\. (\w+):", line)
            if listed:
                index = int(listed[1])
                mask = mask_of(record, role)
                assert text.parse(role, line.split(":")[0], mask) == index


@pytest.mark.parametrize("role", ROLES, ids=facts.ROLES)
def test_other_roles_and_illegal_actions(role: int, episode: list[np.ndarray]) -> None:
    record = episode[0]
    mask = mask_of(record, role)
    own = facts.ACTIONS[facts.ROLES[role]]
    for other in ROLES:
        for index, name in enumerate(facts.ACTIONS[facts.ROLES[other]]):
            answer = text.parse(role, name, mask)
            if name in own:
                expected = own.index(name)
                if mask[expected]:
                    assert answer == expected
                    continue
                assert isinstance(answer, ParseError) and answer.kind == "illegal"
                assert text.ACTION_NEEDS[name] in answer.message
            else:
                assert index > 0
                assert isinstance(answer, ParseError) and answer.kind == "other_role"
                assert facts.ROLES[other] in answer.message


def test_the_task_speaks_through_these_functions() -> None:
    task = CraftingTask("torch")
    task.reset(5)
    for role, agent in enumerate(task.possible_agents):
        assert task.prompt(agent, "bid") == text.prompt(task.record, role, "bid")
        assert task.profile(agent) == text.profile(role, goals.goal_index("torch"))
        assert task.parse(agent, "WAIT") == facts.WAIT
        error = task.parse(agent, "fly")
        assert isinstance(error, ParseError) and error.kind == "unknown_action"
