"""Many episodes stepped by the compiled rules: loops over the rows of one array of records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.navigation.kernel import kernel
from mpt_envs.navigation.rules.expert import expert
from mpt_envs.navigation.rules.prefetch import prefetch_rays, prefetch_state, prefetch_turn
from mpt_envs.navigation.rules.rays import is_kept, unmeasured
from mpt_envs.navigation.rules.snapshots import check_snapshot, set_draws, task_id
from mpt_envs.navigation.rules.summary import METRICS, metrics_of
from mpt_envs.navigation.rules.turn import act, begin, is_legal, skip
from mpt_envs.navigation.views.observation import OBSERVATION_SIZE, write_observation
from mpt_envs.navigation.world.facts import ACTIONS, MAX_TURNS, N_ACTIONS, ROLES
from mpt_envs.navigation.world.layout import DONE, DONE_RUNNING, LAYOUT_VERSION, key_of, new_records
from mpt_envs.navigation.world.worlds import N_WORLD, World, Worlds, clearance_in, start_of, view
from wrappers.native import BatchTask, check_roles, check_rows
from wrappers.rng import as_key
from wrappers.task import Snapshot

_NOTHING: Final = -2


@kernel
def begin_rows(records32, records64, floats, table, rows, keys, source):
    """Start the episodes of some worlds.

    Args:
        records32, records64, floats: all records as int32, float64 and float32.
        table: int64 ``(N, N_WORLD)``: the worlds.
        rows: which of them.
        keys: uint64: their episode keys.
        source: uint64 of the source.
    """
    for i in range(rows.shape[0]):
        row = rows[i]
        world = view(table[row])
        start = start_of(table[row])
        begin(records32[row], records64[row], floats[row], world, start, keys[i], source)


@kernel
def act_rows(records32, records64, floats, table, roles, actions, rewards, terminated, illegal):
    """One turn of every world; see `BatchTask.act`."""
    count = roles.shape[0]
    for row in range(count):
        if row + 4 < count and roles[row + 4] != _NOTHING:
            prefetch_state(records32[row + 4], view(table[row + 4]))
        if row + 2 < count and roles[row + 2] >= 0:
            later, role = row + 2, roles[row + 2]
            prefetch_turn(records32[later], records64[later], view(table[later]), role)
        role = roles[row]
        s, f = records32[row], records64[row]
        illegal[row] = False
        rewards[row] = 0.0
        if role == _NOTHING:
            terminated[row] = False
            continue
        if role == -1:
            rewards[row] = skip(s, f)
        else:
            action = actions[row]
            if s[DONE] == DONE_RUNNING:
                illegal[row] = not is_legal(role, action)
            rewards[row] = act(s, f, floats[row], view(table[row]), role, action)
        terminated[row] = s[DONE] != DONE_RUNNING


@kernel
def observe_rows(records32, records64, floats, table, places, distances, out):
    """Write the observation of every world into the rows of ``out``.

    Args:
        records32, records64, floats, table: as for `begin_rows`.
        places, distances: float64 ``(N, N_PLACE)`` and float32 ``(N, N_RAYS)``, see `rays`.
        out: float32 ``(N, OBSERVATION_SIZE)`` at least.
    """
    count = records32.shape[0]
    for row in range(count):
        if row + 4 < count:
            prefetch_state(records32[row + 4], view(table[row + 4]))
        later = row + 2
        if later < count:
            f = records64[later]
            if not is_kept(places[later], records32[later], f):
                prefetch_rays(f, view(table[later])[1], clearance_in(table[later]))
        s, f, p = records32[row], records64[row], floats[row]
        world, clearance = view(table[row]), clearance_in(table[row])
        write_observation(s, f, p, world, clearance, places[row], distances[row], out[row])


@kernel
def expert_rows(records32, records64, table, bids, actions):
    """Write the expert's bids and actions of every world."""
    for row in range(records32.shape[0]):
        expert(records32[row], records64[row], view(table[row]), bids[row], actions[row])


class NavigationBatch(BatchTask):
    """N episodes of a source.

    Args:
        worlds: of the source; may be shared with other batches and tasks.
        num_envs: N.
    """

    roles = ROLES
    action_counts = N_ACTIONS
    action_names = tuple(ACTIONS[role] for role in ROLES)
    observation_sizes = (OBSERVATION_SIZE,) * len(ROLES)
    shared_observation = True
    default_max_turns = MAX_TURNS
    metric_names = METRICS

    def __init__(self, worlds: Worlds, num_envs: int) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        self.worlds = worlds
        self.task_id = task_id(worlds.source)
        self.coverage = getattr(worlds.source, "coverage", None)
        self.num_envs = num_envs
        self.records = new_records(num_envs)
        self._ints = self.records.view(np.int32)
        self._doubles = self.records.view(np.float64)
        self._singles = self.records.view(np.float32)
        self._table = np.zeros((num_envs, N_WORLD), np.int64)
        self._played: list[World] = []
        self._places, self._distances = unmeasured(num_envs)
        # Kernels follow the addresses of every row, so every row has a world from the start.
        first = worlds.world(worlds.key_for(0, 0))
        self._played = [first] * num_envs
        self._table[:] = first.row
        rows = np.arange(num_envs)
        self._begin(rows, np.full(num_envs, first.key, np.uint64))

    def _begin(self, rows: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
        begin_rows(
            self._ints,
            self._doubles,
            self._singles,
            self._table,
            rows,
            keys,
            self.worlds.source_word,
        )

    def _play(self, row: int, world: World) -> None:
        """Let a row play in a world."""
        self._table[row] = world.row
        self._played[row] = world
        self._places[row] = np.nan

    def reset(
        self, rows: NDArray[np.int64], seeds: NDArray[np.int64], episodes: NDArray[np.int64]
    ) -> None:
        rows = np.ascontiguousarray(rows, dtype=np.int64)
        if rows.size and not (rows.min() >= 0 and rows.max() < self.num_envs):
            raise IndexError(f"rows must be 0 to {self.num_envs - 1}")
        if not rows.shape == np.shape(seeds) == np.shape(episodes):
            raise ValueError("rows, seeds and episodes must have the same shape")
        keys = np.empty(len(rows), np.uint64)
        for i, (row, seed, episode) in enumerate(
            zip(
                rows.tolist(),
                np.asarray(seeds).tolist(),
                np.asarray(episodes).tolist(),
                strict=True,
            )
        ):
            keys[i] = self.worlds.key_for(seed, episode)
            self._play(row, self.worlds.world(int(keys[i])))
        self._begin(rows, keys)

    def observe(self, out: Sequence[NDArray[np.float32]]) -> None:
        check_rows(self.num_envs, observations=out[0])
        if out[0].shape[1] < OBSERVATION_SIZE:
            raise ValueError(f"observations need {OBSERVATION_SIZE} columns, not {out[0].shape[1]}")
        observe_rows(
            self._ints,
            self._doubles,
            self._singles,
            self._table,
            self._places,
            self._distances,
            out[0],
        )

    def action_masks(self, out: Sequence[NDArray[np.bool_]]) -> None:
        for masks in out:
            check_rows(self.num_envs, masks=masks)
            masks[:] = True

    def act(
        self,
        roles: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        illegal: NDArray[np.bool_],
    ) -> None:
        check_rows(
            self.num_envs,
            roles=roles,
            actions=actions,
            rewards=rewards,
            terminated=terminated,
            illegal=illegal,
        )
        check_roles(roles, len(ROLES))
        act_rows(
            self._ints,
            self._doubles,
            self._singles,
            self._table,
            roles,
            actions,
            rewards,
            terminated,
            illegal,
        )

    def snapshot(self, row: int) -> Snapshot:
        payload = self.records[row].tobytes()
        return Snapshot(self.task_id, LAYOUT_VERSION, payload, "exact").verify()

    def restore(self, row: int, snapshot: Snapshot) -> None:
        snapshot, world = check_snapshot(snapshot, self.worlds)
        self.records[row] = np.frombuffer(snapshot.payload, dtype=np.uint8)
        self._play(row, world)

    def reseed(self, row: int, key: int) -> None:
        set_draws(self.records[row], as_key(key))

    def metrics(self) -> NDArray[np.float64]:
        return np.array(
            [
                metrics_of(record, world)
                for record, world in zip(self.records, self._played, strict=True)
            ]
        )

    def world(self, row: int) -> World:
        """What a row plays in."""
        world = self._played[row]
        assert world.key == key_of(self.records[row])
        return world

    def spawn(self, num_envs: int) -> NavigationBatch:
        return NavigationBatch(self.worlds, num_envs)

    @property
    def has_expert(self) -> bool:
        return True

    def expert(self, bids: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
        check_rows(self.num_envs, bids=bids, actions=actions)
        if min(bids.shape[1], actions.shape[1]) < len(ROLES):
            raise ValueError(f"bids and actions need {len(ROLES)} columns, one per role")
        expert_rows(self._ints, self._doubles, self._table, bids, actions)
