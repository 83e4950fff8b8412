"""The Gymnasium adapter on Taxi, MiniGrid, CartPole and environments that are hard on it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from wrappers.bid_then_act import BidThenActEnv
from wrappers.errors import MissingCapabilityError, PhaseError, SnapshotError
from wrappers.gymnasium_state import ObjectGraphState
from wrappers.gymnasium_task import GymnasiumTask
from wrappers.task import Snapshot

ROOT = Path(__file__).resolve().parents[2]
TAXI = next(name for name in ("Taxi-v4", "Taxi-v3") if name in gymnasium.registry)
TAXI_ROLES = {"driver": [0, 1, 2, 3], "porter": [4, 5]}
HAS_MINIGRID = importlib.util.find_spec("minigrid") is not None
needs_minigrid = pytest.mark.skipif(not HAS_MINIGRID, reason="minigrid is not installed")
GRID_ROLES = {
    "turner": ["left", "right"],
    "mover": ["forward"],
    "hand": ["pickup", "drop", "toggle"],
}


def _minigrid(name: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    import minigrid  # noqa: F401  (registers the environments)

    return gymnasium.make(name, **kwargs)


def taxi() -> GymnasiumTask:
    names = ["south", "north", "east", "west", "pickup", "dropoff"]
    return GymnasiumTask(TAXI, TAXI_ROLES, action_names=names)


def door_key() -> GymnasiumTask:
    env = _minigrid("MiniGrid-DoorKey-6x6-v0")
    return GymnasiumTask(env, {**GRID_ROLES, "idler": ["done"]})


def obstacles() -> GymnasiumTask:
    """Moving balls that draw from the generator in every step and are held in two places."""
    return GymnasiumTask(
        lambda: _minigrid("MiniGrid-Dynamic-Obstacles-6x6-v0"),
        {"turner": ["left", "right"], "mover": ["forward"]},
    )


def frozen_lake() -> GymnasiumTask:
    return GymnasiumTask("FrozenLake-v1", {"a": [0, 1], "b": [2, 3]})


def cart_pole() -> GymnasiumTask:
    return GymnasiumTask("CartPole-v1", {"lefty": [0], "righty": [1]})


def taxi_replay() -> GymnasiumTask:
    return GymnasiumTask(TAXI, TAXI_ROLES, snapshot="replay")


TASKS: dict[str, tuple[Callable[[], GymnasiumTask], str]] = {
    "taxi": (taxi, "exact"),
    "frozen_lake": (frozen_lake, "exact"),
    "cart_pole": (cart_pole, "replay"),
    "taxi_replay": (taxi_replay, "replay"),
    "door_key": (door_key, "exact"),
    "obstacles": (obstacles, "exact"),
}
ALL = [
    pytest.param(name, marks=needs_minigrid if name in ("door_key", "obstacles") else [])
    for name in TASKS
]


def play(task: GymnasiumTask, steps: int, seed: int) -> list[Any]:
    """Random turns, skips and illegal actions included, with all that can be seen of them."""
    generator = np.random.default_rng(seed)
    trace: list[Any] = []
    for _ in range(steps):
        agent = task.possible_agents[generator.integers(len(task.possible_agents))]
        action = int(generator.integers(len(task.action_names(agent))))
        result = task.skip() if generator.random() < 0.1 else task.act(agent, action)
        trace.append(
            (
                result.reward,
                result.terminated,
                result.info.get("illegal"),
                task.observe(agent).tolist(),
                [task.action_mask(a).tolist() for a in task.possible_agents],
                task.metrics(),
                task.describe(),
            )
        )
        if result.terminated:
            break
    return trace


@pytest.mark.parametrize("name", ALL)
def test_it_says_how_snapshots_work(name: str) -> None:
    factory, fidelity = TASKS[name]
    task = factory()
    assert task.snapshot_fidelity == fidelity
    assert task.snapshot_note.startswith(fidelity)
    task.reset(0)
    assert task.snapshot().fidelity == fidelity


@pytest.mark.parametrize("name", ALL)
def test_restored_futures_are_the_original_ones(name: str) -> None:
    task, other = TASKS[name][0](), TASKS[name][0]()
    for seed in range(6):
        task.reset(seed, episode=seed % 2)
        play(task, 3 * seed, seed)
        snapshot = task.snapshot()
        seen = [task.observe(a).tolist() for a in task.possible_agents]
        expected = play(task, 40, seed + 100)
        final = task.snapshot()
        task.restore(snapshot)
        assert task.snapshot() == snapshot
        assert [task.observe(a).tolist() for a in task.possible_agents] == seen
        assert play(task, 40, seed + 100) == expected
        assert task.snapshot() == final
        # A task that has not even been reset.
        other.restore(snapshot)
        assert other.snapshot() == snapshot
        assert play(other, 40, seed + 100) == expected
        assert other.snapshot() == final


@pytest.mark.parametrize("name", ALL)
def test_a_seed_fixes_the_whole_episode(name: str) -> None:
    task, other = TASKS[name][0](), TASKS[name][0]()
    traces = []
    for seed, episode in ((0, 0), (0, 1), (7, 0)):
        task.reset(seed, episode)
        first = play(task, 60, 5)
        other.reset(99)
        play(other, 5, 1)
        other.reset(seed, episode)
        assert play(other, 60, 5) == first
        traces.append(first)
    if name != "frozen_lake":  # which always starts in the same corner
        assert traces[0] != traces[1]
        assert traces[0] != traces[2]


@pytest.mark.parametrize("name", ALL)
def test_clones_are_independent(name: str) -> None:
    task = TASKS[name][0]()
    fresh = task.clone()
    task.reset(3)
    play(task, 5, 0)
    before = task.snapshot()
    twin = task.clone()
    assert twin.snapshot() == before
    expected = play(twin, 20, 1)
    assert task.snapshot() == before
    assert play(task, 20, 1) == expected
    fresh.reset(3)
    play(fresh, 5, 0)
    assert fresh.snapshot() == before


@pytest.mark.parametrize("name", ALL)
def test_a_snapshot_restores_in_another_process(name: str) -> None:
    task = TASKS[name][0]()
    task.reset(4)
    play(task, 7, 2)
    snapshot = task.snapshot()
    expected = json.dumps(play(task, 30, 3))
    program = (
        "import json, sys\n"
        "from tests.wrappers.test_gymnasium_task import TASKS, play\n"
        "from wrappers.task import Snapshot\n"
        f"task = TASKS[{name!r}][0]()\n"
        "task_id, version, fidelity, payload = json.load(sys.stdin)\n"
        "task.restore(Snapshot(task_id, version, bytes.fromhex(payload), fidelity))\n"
        "print(json.dumps(play(task, 30, 3)))\n"
    )
    given = (snapshot.task_id, snapshot.version, snapshot.fidelity, snapshot.payload.hex())
    run = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip().splitlines()[-1] == expected


@pytest.mark.parametrize("name", ALL)
def test_corrupt_and_foreign_snapshots_change_nothing(name: str) -> None:
    task = TASKS[name][0]()
    task.reset(1)
    play(task, 4, 0)
    before = task.snapshot()
    payload = bytearray(before.payload)
    payload[len(payload) // 2] ^= 4
    changed = Snapshot(before.task_id, before.version, bytes(payload), before.fidelity)
    short = Snapshot(before.task_id, before.version, before.payload[:-9], before.fidelity)
    empty = Snapshot(before.task_id, before.version, b"", before.fidelity)
    for wrong in (changed, short, empty):
        with pytest.raises(SnapshotError, match="corrupt"):
            task.restore(wrong)
    with pytest.raises(SnapshotError, match="taken from"):
        task.restore(Snapshot("other", before.version, before.payload, before.fidelity))
    with pytest.raises(SnapshotError, match="version"):
        task.restore(Snapshot(before.task_id, 99, before.payload, before.fidelity))
    assert task.snapshot() == before


def test_exact_and_replay_snapshots_are_not_mixed() -> None:
    exact, replay = taxi(), taxi_replay()
    exact.reset(0)
    with pytest.raises(SnapshotError, match="replay, as asked for"):
        replay.restore(exact.snapshot())


def test_other_wrappers_around_the_environment_are_noticed() -> None:
    limited = GymnasiumTask(TAXI, TAXI_ROLES)
    bare = GymnasiumTask(gymnasium.make(TAXI).unwrapped, TAXI_ROLES)
    assert bare.snapshot_fidelity == "exact"
    limited.reset(0)
    bare.reset(1)
    with pytest.raises(SnapshotError, match="other wrappers"):
        bare.restore(limited.snapshot())


# -- the translation -----------------------------------------------------------------------------


def test_taxi_masks_are_the_environments_restricted_to_the_role() -> None:
    task = taxi()
    for seed in range(20):
        task.reset(seed)
        info = task.env.unwrapped.action_mask(task.env.unwrapped.s)  # type: ignore[attr-defined]
        assert task.action_mask("driver_0").tolist() == info[:4].tolist()
        if info[4:].any():
            assert task.action_mask("porter_0").tolist() == info[4:].tolist()
        else:
            # Nothing to load or unload here: every choice of the porter is a skipped turn.
            assert task.action_mask("porter_0").tolist() == [1, 1]
            result = task.act("porter_0", 1)
            assert (result.reward, result.terminated) == (0.0, False)
            assert result.info == {"no_legal_action": True}
            assert task.metrics()["env_steps"] == 0.0


def test_an_illegal_action_does_what_a_skipped_turn_does() -> None:
    task = taxi()
    for seed in range(50):
        task.reset(seed)
        illegal = np.flatnonzero(task.action_mask("driver_0") == 0)
        if illegal.size:
            break
    before = task.snapshot()
    assert task.skip() == (0.0, False, {})
    after = task.snapshot()
    task.restore(before)
    result = task.act("driver_0", int(illegal[0]))
    assert result == (0.0, False, {"illegal": True})
    assert task.snapshot() == after
    assert task.metrics()["env_steps"] == 0.0


def test_actions_reach_the_environment() -> None:
    task = taxi()
    plain = gymnasium.make(TAXI)
    task.reset(8)
    plain.reset(seed=task._episode.start[0] & 0x7FFFFFFF)
    generator = np.random.default_rng(0)
    for _ in range(30):
        agent = task.possible_agents[generator.integers(2)]
        legal = np.flatnonzero(task._own_mask(agent))
        if not legal.size:
            continue
        action = int(generator.choice(legal))
        result = task.act(agent, action)
        observation, reward, *_ = plain.step(task.env_action(agent, action))
        assert result.reward == reward
        assert task.observe(agent).argmax() == observation
    assert task.env_action("porter_0", 0) == 4
    assert task.action_names("porter_0") == ("pickup", "dropoff")


def test_a_skip_action_is_performed_in_skipped_turns() -> None:
    task = GymnasiumTask("CartPole-v1", {"a": [0], "b": [1]}, skip_action=1)
    task.reset(0)
    assert task.skip().reward == 1.0
    assert task.metrics()["env_steps"] == 1.0
    still = cart_pole()
    still.reset(0)
    assert still.skip() == (0.0, False, {})
    assert still.metrics()["env_steps"] == 0.0


def test_the_time_limit_terminates_the_task() -> None:
    task = GymnasiumTask(gymnasium.make(TAXI, max_episode_steps=3), TAXI_ROLES)
    assert task.default_max_turns == 3
    task.reset(0)
    results = [task.act("driver_0", int(task.action_mask("driver_0").argmax())) for _ in range(3)]
    assert [r.terminated for r in results] == [False, False, True]
    assert results[-1].info["time_limit"] is True
    assert task.metrics()["success"] == 0.0
    # The end stays the end, also after a restore, and nothing more is played.
    task.restore(task.snapshot())
    assert task.act("driver_0", 0) == (0.0, True, {"over": True})
    assert task.skip() == (0.0, True, {"over": True})
    assert task.metrics()["env_steps"] == 3.0


@needs_minigrid
def test_minigrid_names_its_actions_and_drops_the_mission() -> None:
    task = door_key()
    assert task.possible_agents == ("turner_0", "mover_0", "hand_0", "idler_0")
    assert task.action_names("hand_0") == ("pickup", "drop", "toggle")
    assert task.dropped_observations == ("mission",)
    assert task.observation_size("hand_0") == 4 + 7 * 7 * 3
    task.reset(0)
    assert "mission: use the key to open the door" in task.prompt("mover_0", "act")


@needs_minigrid
def test_an_id_may_name_the_module_that_registers_it() -> None:
    task = GymnasiumTask("minigrid:MiniGrid-Empty-5x5-v0", {"a": [0, 1, 2], "b": [3, 4, 5, 6]})
    assert "rgb_array" in task.render_modes
    with pytest.raises(gymnasium.error.Error, match="Nowhere"):
        GymnasiumTask("Nowhere-v0", {"a": [0]})


@needs_minigrid
def test_minigrid_can_be_solved_and_reports_it() -> None:
    task = GymnasiumTask(_minigrid("MiniGrid-Empty-5x5-v0"), {"t": [0, 1, 3, 4, 5, 6], "m": [2]})
    task.reset(0)
    for agent, action in (("m_0", 0), ("m_0", 0), ("t_0", 1), ("m_0", 0)):
        assert not task.act(agent, action).terminated
    result = task.act("m_0", 0)
    assert result.terminated
    assert result.reward > 0.9
    assert task.metrics()["success"] == 1.0


def test_the_success_rule_can_be_given() -> None:
    def stayed_up(info: Any, terminated: bool, reward: float) -> bool:
        return not terminated

    env = gymnasium.make("CartPole-v1", max_episode_steps=2)
    task = GymnasiumTask(env, {"a": [0], "b": [1]}, success=stayed_up)
    task.reset(0)
    task.act("a_0", 0)
    task.act("b_0", 0)
    assert task.metrics()["success"] == 1.0


def counts(task: GymnasiumTask, skips: bool) -> list[int]:
    """What `Counter` draws in ten turns, without the third and the sixth, which may be skipped."""
    drawn = []
    for turn in range(10):
        before = task.observe("slow_0")[0]
        if turn in (2, 5):
            if skips:
                task.skip()
            else:
                task.act("slow_0", 0)
        else:
            task.act("slow_0", 0)
            drawn.append(int(task.observe("slow_0")[0] - before))
    return drawn


@pytest.mark.parametrize("snapshot", ["auto", "replay"])
def test_branches_share_their_luck_turn_by_turn(snapshot: Any) -> None:
    shared = GymnasiumTask(CounterWithApi, COUNTER_ROLES, snapshot=snapshot)
    stream = GymnasiumTask(CounterWithApi, COUNTER_ROLES, snapshot=snapshot, luck="stream")
    differ = 0
    for seed in range(10):
        results = []
        for task in (shared, stream):
            task.reset(seed)
            start = task.snapshot()
            straight = counts(task, skips=False)
            task.restore(start)
            results.append(counts(task, skips=True) == straight)
        assert results[0]
        differ += not results[1]
    assert differ > 5


def test_luck_by_turns_has_the_environments_distribution() -> None:
    task = frozen_lake()  # slippery: one step in three goes where it should
    ends = np.zeros(16)
    for seed in range(900):
        task.reset(seed)
        task.act("b_0", 0)  # right, from the upper left corner
        ends[task.observe("b_0").argmax()] += 1
    # Right, or down, or up against the wall.
    assert set(np.flatnonzero(ends)) == {0, 1, 4}
    assert np.abs(ends[[0, 1, 4]] - 300).max() < 5 * np.sqrt(200)


def test_reseeding_changes_the_luck_and_nothing_else() -> None:
    task = frozen_lake()
    task.reset(0)
    start = task.snapshot()
    ends = set()
    for key in range(30):
        task.restore(start)
        task.reseed(key)
        play(task, 30, 1)
        ends.add(task.describe())
        again = task.snapshot()
        task.restore(start)
        task.reseed(key)
        play(task, 30, 1)
        assert task.snapshot() == again
    assert len(ends) > 1
    replay = GymnasiumTask("FrozenLake-v1", {"a": [0, 1], "b": [2, 3]}, snapshot="replay")
    replay.reset(0)
    replay.act("a_0", 1)
    replay.reseed(5)
    play(replay, 3, 1)
    snapshot = replay.snapshot()
    expected = play(replay, 20, 2)
    replay.restore(snapshot)
    assert play(replay, 20, 2) == expected


def test_pictures_and_texts() -> None:
    task = taxi()
    assert task.render_modes == ("ansi", "rgb_array")
    task.reset(0)
    picture = task.render("rgb_array")
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert "winner: driver_0" in task.render("ansi", {"winner": "driver_0"})
    assert "driver" in task.profile("driver_0")
    described = GymnasiumTask(TAXI, TAXI_ROLES, describe=lambda env: f"taxi at {env.unwrapped.s}")
    described.reset(0)
    assert "taxi at " in described.prompt("porter_0", "act")
    with pytest.raises(MissingCapabilityError, match="human"):
        task.render("human")
    task.close()


def test_observations_are_fresh_arrays() -> None:
    task = cart_pole()
    task.reset(0)
    first = task.observe("lefty_0")
    first[:] = 9.0
    assert (task.observe("lefty_0") != 9.0).all()


def test_the_market_game_runs_on_it() -> None:
    env = BidThenActEnv(taxi(), max_turns=20)
    env.reset(seed=0)
    generator = np.random.default_rng(0)
    while env.agents:
        observation, _, terminated, truncated, _ = env.last()
        if terminated or truncated:
            env.step(None)
            continue
        assert env.observation_space(env.agent_selection).contains(observation)
        env.step(int(generator.choice(np.flatnonzero(observation["action_mask"]))))
    assert env.turn == 20


# -- wrong input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("roles", "words"),
    [
        ({"a": [0, 1, 2, 3], "b": [4]}, "given to none: dropoff"),
        ({"a": [0, 1, 2, 3], "b": [3, 4, 5]}, "west given to a and b"),
        ({"a": [0, 1, 2, 3, 3], "b": [4, 5]}, "west given to a and a"),
        ({"a": [0, 1, 2, 3, 4, 5], "b": []}, "at least one action"),
        ({"a": [0, 1, 2, 3], "b": [4, 6]}, "unknown action 6"),
        ({"a": [0, 1, 2, 3], "b": [4, "fly"]}, "unknown action 'fly'"),
        ({"a": [0, 1, 2, 3], "b": [4, -1]}, "unknown action -1"),
    ],
)
def test_roles_must_be_a_partition(roles: dict[str, list[Any]], words: str) -> None:
    names = ["south", "north", "east", "west", "pickup", "dropoff"]
    with pytest.raises(ValueError, match=words):
        GymnasiumTask(TAXI, roles, action_names=names)


def test_other_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="Discrete"):
        GymnasiumTask("Pendulum-v1", {"a": [0]})
    with pytest.raises(ValueError, match="6 different names"):
        GymnasiumTask(TAXI, TAXI_ROLES, action_names=["x"] * 6)
    with pytest.raises(ValueError, match='"auto" or "replay"'):
        GymnasiumTask(TAXI, TAXI_ROLES, snapshot="exact")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='"turn" or "stream"'):
        GymnasiumTask(TAXI, TAXI_ROLES, luck="bad")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown action 'wait'"):
        GymnasiumTask(TAXI, TAXI_ROLES, skip_action="wait")
    with pytest.raises(TypeError, match="a function that makes one"):
        GymnasiumTask(3, TAXI_ROLES)  # type: ignore[arg-type]
    task = taxi()
    for call in (task.snapshot, task.skip, lambda: task.observe("driver_0"), task.describe):
        with pytest.raises(PhaseError, match="reset"):
            call()
    with pytest.raises(TypeError, match="plain data"):
        task.reset(0, options={"x": object()})
    task.reset(0, options={"options": 1})
    with pytest.raises(KeyError, match="unknown agent"):
        task.observe("nobody_0")


# -- environments that are hard on snapshots ------------------------------------------------------


class Counter(gymnasium.Env[Any, Any]):
    """Counts up; its action space starts at 5, its observation array is reused."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 100, (1,), np.float32)
        self.action_space = spaces.Discrete(2, start=5)  # type: ignore[assignment]
        self._buffer = np.zeros(1, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.count = int(self.np_random.integers(3))
        return self._look(), {}

    def step(self, action: int) -> Any:
        assert action in (5, 6)
        self.count += (action - 4) * int(self.np_random.integers(1, 3))
        return self._look(), float(self.count), self.count > 90, False, {}

    def _look(self) -> Any:
        self._buffer[0] = self.count
        return self._buffer


class CounterWithApi(Counter):
    def get_state(self) -> Any:
        return {"count": self.count}

    def set_state(self, state: Any) -> None:
        self.count = state["count"]


class CounterWithWrongApi(CounterWithApi):
    """Its state leaves the count out: only trying finds that."""

    def get_state(self) -> Any:
        return 0

    def set_state(self, state: Any) -> None:
        pass


class CounterWithOpaqueApi(CounterWithApi):
    def get_state(self) -> Any:
        return object()


class Unrepeatable(Counter):
    """Ignores its seed."""

    calls = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        Unrepeatable.calls += 1
        result = super().reset(seed=seed)
        self.count = Unrepeatable.calls
        return self._look(), result[1]


COUNTER_ROLES = {"slow": [5], "fast": [6]}


def test_an_environments_own_state_api_is_used() -> None:
    task = GymnasiumTask(CounterWithApi, COUNTER_ROLES)
    assert task.snapshot_note == "exact: state by OwnStateApi"
    assert task.task_id == "gymnasium/CounterWithApi"
    assert task.action_names("fast_0") == ("action_6",)
    task.reset(0)
    snapshot = task.snapshot()
    first = play(task, 20, 0)
    task.restore(snapshot)
    assert play(task, 20, 0) == first


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        (Counter, "no way to read the state"),
        (CounterWithWrongApi, "does not determine"),
        (CounterWithOpaqueApi, "builtins.object"),
        (lambda: gymnasium.wrappers.FrameStackObservation(CounterWithApi(), 2), "FrameStack"),
    ],
)
def test_replay_where_the_state_is_not_to_be_had(
    factory: Callable[[], gymnasium.Env[Any, Any]], words: str
) -> None:
    task = GymnasiumTask(factory, COUNTER_ROLES)
    assert task.snapshot_fidelity == "replay"
    assert words in task.snapshot_note
    task.reset(2)
    play(task, 6, 0)
    snapshot = task.snapshot()
    first = play(task, 20, 1)
    task.restore(snapshot)
    assert task.snapshot() == snapshot
    assert play(task, 20, 1) == first


def test_a_callers_adapter_makes_plain_python_exact() -> None:
    adapter = ObjectGraphState(f"{Counter.__module__}:Counter", f"{Counter.__module__}")
    task = GymnasiumTask(Counter, COUNTER_ROLES, adapters=[adapter])
    assert task.snapshot_fidelity == "exact"
    task.reset(2)
    snapshot = task.snapshot()
    first = play(task, 20, 1)
    task.restore(snapshot)
    assert play(task, 20, 1) == first


def test_a_replay_that_diverges_is_an_error_and_not_a_wrong_state() -> None:
    task = GymnasiumTask(Unrepeatable, COUNTER_ROLES)
    task.reset(0)
    snapshot = task.snapshot()
    with pytest.raises(SnapshotError, match="not determined by its seed and actions"):
        task.restore(snapshot)


def test_a_failed_replay_leaves_the_task_as_it_was() -> None:
    task = GymnasiumTask(Counter, COUNTER_ROLES)
    task.reset(3)
    play(task, 5, 0)
    before = task.snapshot()
    from wrappers.packing import pack

    forged = pack({"start": (1, None), "events": [0, 1], "digest": "not it"})
    with pytest.raises(SnapshotError):
        task.restore(Snapshot(task.task_id, 1, forged, "replay"))
    assert task.snapshot() == before
