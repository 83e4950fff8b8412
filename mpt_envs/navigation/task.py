"""`NavigationTask`: one episode as a turn task, by the same compiled rules as a thousand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.batch import act_rows, begin_rows, expert_rows, observe_rows
from mpt_envs.navigation.rules.rays import unmeasured
from mpt_envs.navigation.rules.snapshots import check_snapshot, set_draws, task_id
from mpt_envs.navigation.rules.summary import METRICS, metrics_of
from mpt_envs.navigation.views.observation import FEATURE_NAMES, OBSERVATION_SIZE
from mpt_envs.navigation.world.facts import ACTIONS, MAX_TURNS, N_ACTIONS, ROLES
from mpt_envs.navigation.world.layout import LAYOUT_VERSION, new_records
from mpt_envs.navigation.world.worlds import World, Worlds
from wrappers.rng import as_key
from wrappers.task import ParseError, Phase, Snapshot, TurnResult, TurnTask


class NavigationTask(TurnTask):
    """Follow an instruction through a building; turner, mover and stopper share one body.

    Observation: ``float32 (OBSERVATION_SIZE,)`` in [-1, 1], the same for every agent; see
    `observation.FEATURE_NAMES`. Reward: see `rules`. The episode ends (``terminated``) with a stop,
    or after 500 primitive steps.

    Args:
        worlds: of a source of episodes; may be shared with other tasks and batches.

    Attributes:
        worlds: the same.
        feature_names: name of each entry of the observation.
    """

    snapshot_version = LAYOUT_VERSION
    possible_agents = tuple(f"{role}_0" for role in ROLES)
    roles = ROLES
    default_max_turns = MAX_TURNS
    observation_low = -1.0
    observation_high = 1.0
    shared_observation = True
    feature_names = FEATURE_NAMES

    def __init__(self, worlds: Worlds) -> None:
        self.worlds = worlds
        self.task_id = task_id(worlds.source)
        self.coverage = getattr(worlds.source, "coverage", None)
        self._role = {name: role for role, name in enumerate(self.possible_agents)}
        self._records = new_records(1)
        self._ints = self._records.view(np.int32)
        self._doubles = self._records.view(np.float64)
        self._singles = self._records.view(np.float32)
        self._roles = np.zeros(1, np.int64)
        self._actions = np.zeros(1, np.int64)
        self._rewards = np.zeros(1)
        self._terminated = np.zeros(1, np.bool_)
        self._illegal = np.zeros(1, np.bool_)
        self._observation = np.empty((1, OBSERVATION_SIZE), np.float32)
        self._observed = False
        self._places, self._distances = unmeasured(1)
        self._begin(self.worlds.key_for(0, 0))

    def _play(self, world: World) -> None:
        self._world = world
        self._table = world.row[None]
        self._places[:] = np.nan
        self._observed = False

    def _begin(self, key: int) -> None:
        self._play(self.worlds.world(key))
        begin_rows(
            self._ints,
            self._doubles,
            self._singles,
            self._table,
            np.zeros(1, np.int64),
            np.array([key], np.uint64),
            self.worlds.source_word,
        )

    @property
    def record(self) -> NDArray[np.uint8]:
        """The state: uint8 ``(RECORD_BYTES,)``, see `layout`."""
        return self._records[0]

    @property
    def world(self) -> World:
        """Scene, episode and instruction that are being played."""
        return self._world

    # -- spaces ------------------------------------------------------------------------------

    def observation_size(self, agent: str) -> int:
        return OBSERVATION_SIZE

    def action_names(self, agent: str) -> tuple[str, ...]:
        return ACTIONS[ROLES[self._role[agent]]]

    # -- dynamics ----------------------------------------------------------------------------

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Begin an episode of the source.

        Option ``episode``: the id of the episode to play, where the source has ids (R2R-CE); seed
        and episode then choose nothing.

        Raises:
            ValueError: the source has no episode of this id, or no ids.
        """
        wanted = None if options is None else options.get("episode")
        if wanted is None:
            self._begin(self.worlds.key_for(seed, episode))
            return
        key_of = getattr(self.worlds.source, "key_of", None)
        if key_of is None:
            raise ValueError(
                f"{self.task_id} has no episodes by id; leave options['episode'] out, and choose "
                "by seed"
            )
        self._begin(int(key_of(wanted)))

    def observe(self, agent: str) -> NDArray[np.float32]:
        if not self._observed:
            observe_rows(
                self._ints,
                self._doubles,
                self._singles,
                self._table,
                self._places,
                self._distances,
                self._observation,
            )
            self._observed = True
        return self._observation[0].copy()

    def action_mask(self, agent: str) -> NDArray[np.int8]:
        return np.ones(N_ACTIONS[self._role[agent]], np.int8)

    def act(self, agent: str, action: int) -> TurnResult:
        return self._turn(self._role[agent], int(action))

    def skip(self) -> TurnResult:
        return self._turn(-1, -1)

    def _turn(self, role: int, action: int) -> TurnResult:
        self._roles[0], self._actions[0] = role, action
        act_rows(
            self._ints,
            self._doubles,
            self._singles,
            self._table,
            self._roles,
            self._actions,
            self._rewards,
            self._terminated,
            self._illegal,
        )
        self._observed = False
        info: dict[str, Any] = {"illegal": True} if self._illegal[0] else {}
        return TurnResult(float(self._rewards[0]), bool(self._terminated[0]), info)

    # -- state -------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        return Snapshot(self.task_id, LAYOUT_VERSION, self._records.tobytes(), "exact").verify()

    def restore(self, snapshot: Snapshot) -> None:
        snapshot, world = check_snapshot(snapshot, self.worlds)
        self._records[0] = np.frombuffer(snapshot.payload, dtype=np.uint8)
        self._play(world)

    def reseed(self, key: int) -> None:
        set_draws(self.record, as_key(key))

    def clone(self) -> NavigationTask:
        twin = type(self)(self.worlds)
        twin._records[:] = self._records
        twin._play(self._world)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> NavigationTask:
        return self.clone()

    def __getstate__(self) -> dict[str, Any]:
        return {"worlds": self.worlds, "record": self._records.tobytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["worlds"])  # type: ignore[misc]
        self.restore(Snapshot(self.task_id, LAYOUT_VERSION, state["record"], "exact"))

    # -- optional parts ----------------------------------------------------------------------

    def prompt(self, agent: str, phase: Phase) -> str:
        from mpt_envs.navigation.views import text

        return text.prompt(self.record, self._world, self._role[agent], phase)

    def profile(self, agent: str) -> str:
        from mpt_envs.navigation.views import text

        return text.profile(self._role[agent])

    def narrate(self) -> list[str]:
        """What happened in the last turn, in a few words each; for logs and playthroughs."""
        from mpt_envs.navigation.views import text

        return text.narrate(self.record, self._world)

    def parse(self, agent: str, text: str) -> int | ParseError:
        from mpt_envs.navigation.views import answers

        return answers.parse(self._role[agent], text)

    def expert_bid(self, agent: str) -> float:
        return float(self._expert()[0][self._role[agent]])

    def expert_action(self, agent: str) -> int:
        return int(self._expert()[1][self._role[agent]])

    def _expert(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        bids = np.empty((1, len(ROLES)))
        actions = np.empty((1, len(ROLES)), np.int64)
        expert_rows(self._ints, self._doubles, self._table, bids, actions)
        return bids[0], actions[0]

    def render(self, mode: str, overlay: Mapping[str, Any] | None = None) -> Any:
        if mode == "ansi":
            from mpt_envs.navigation.views.ansi import ansi

            return ansi(self.record, self._world, overlay)
        if mode == "rgb_array":
            from mpt_envs.navigation.views.render import rgb_array

            return rgb_array(self.record, self._world, overlay)
        raise ValueError(f"render mode must be one of {self.render_modes}, got {mode!r}")

    def metrics(self) -> dict[str, float]:
        return dict(zip(METRICS, metrics_of(self.record, self._world), strict=True))
