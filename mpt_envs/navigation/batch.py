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
from mpt_envs.navigation.rules.snapshots import check_source, is_valid, set_draws, task_id
from mpt_envs.navigation.rules.summary import METRICS, metrics_of
from mpt_envs.navigation.rules.turn import act, begin, is_legal, skip
from mpt_envs.navigation.views.observation import FEATURE_NAMES, write_observation
from mpt_envs.navigation.world.facts import ACTIONS, MAX_TURNS, ROLES
from mpt_envs.navigation.world.layout import DONE, DONE_RUNNING, LAYOUT_VERSION, key_of, new_records
from mpt_envs.navigation.world.worlds import N_WORLD, World, Worlds, clearance_in, start_of, view
from wrappers.records import RecordBatch

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


class NavigationBatch(RecordBatch):
    """N episodes of a source.

    Args:
        worlds: of the source; may be shared with other batches and tasks.
        num_envs: N.

    Attributes:
        worlds: the same.
        played: what each row plays in.
        ints, doubles, singles: the records as int32, float64 and float32.
        table: int64 ``(N, N_WORLD)``: addresses of the worlds, for kernels.
    """

    roles = ROLES
    action_names = tuple(ACTIONS[role] for role in ROLES)
    feature_names = FEATURE_NAMES
    default_max_turns = MAX_TURNS
    metric_names = METRICS
    snapshot_version = LAYOUT_VERSION

    def __init__(self, worlds: Worlds, num_envs: int) -> None:
        super().__init__(num_envs, worlds=worlds)
        self.worlds = worlds
        self.task_id = task_id(worlds.source)
        self.coverage = getattr(worlds.source, "coverage", None)
        self.records = new_records(self.num_envs)
        self.ints = self.records.view(np.int32)
        self.doubles = self.records.view(np.float64)
        self.singles = self.records.view(np.float32)
        self.table = np.zeros((self.num_envs, N_WORLD), np.int64)
        self.places, self.distances = unmeasured(self.num_envs)
        # Kernels follow the addresses of every row, so every row has a world from the start.
        first = worlds.world(worlds.key_for(0, 0))
        self.played: list[World] = [first] * self.num_envs
        self.begin_keys(np.arange(self.num_envs), np.full(self.num_envs, first.key, np.uint64))

    def begin_rows(
        self, rows: NDArray[np.int64], seeds: NDArray[np.int64], episodes: NDArray[np.int64]
    ) -> None:
        starts = zip(seeds.tolist(), episodes.tolist(), strict=True)
        self.begin_keys(
            rows, np.array([self.worlds.key_for(*start) for start in starts], np.uint64)
        )

    def begin_keys(self, rows: NDArray[np.int64], keys: NDArray[np.uint64]) -> None:
        """Start the episodes of keys of the source."""
        for row, key in zip(rows.tolist(), keys.tolist(), strict=True):
            self._play(row, self.worlds.world(key))
        word = self.worlds.source_word
        begin_rows(self.ints, self.doubles, self.singles, self.table, rows, keys, word)

    def _play(self, row: int, world: World) -> None:
        """Let a row play in a world."""
        self.table[row] = world.row
        self.played[row] = world
        self.places[row] = np.nan

    def refresh(self, row: int) -> None:
        self._play(row, self.worlds.world(key_of(self.records[row])))

    def observe_rows(self, out: NDArray[np.float32]) -> None:
        records = self.ints, self.doubles, self.singles
        observe_rows(*records, self.table, self.places, self.distances, out)

    def mask_rows(self, role: int, out: NDArray[np.bool_]) -> None:
        out[:] = True

    def act_rows(
        self,
        roles: NDArray[np.int64],
        actions: NDArray[np.int64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
        illegal: NDArray[np.bool_],
    ) -> None:
        records = self.ints, self.doubles, self.singles
        act_rows(*records, self.table, roles, actions, rewards, terminated, illegal)

    def expert_rows(self, bids: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
        expert_rows(self.ints, self.doubles, self.table, bids, actions)

    def check_origin(self, record: NDArray[np.uint8]) -> None:
        check_source(record, self.worlds)

    def is_state(self, record: NDArray[np.uint8]) -> bool:
        return is_valid(record, self.worlds.world(key_of(record)))

    def set_key(self, record: NDArray[np.uint8], key: np.uint64) -> None:
        set_draws(record, key)

    def metrics(self) -> NDArray[np.float64]:
        return np.array([self.row_metrics(row) for row in range(self.num_envs)])

    def row_metrics(self, row: int) -> Sequence[float]:
        return metrics_of(self.records[row], self.played[row])

    def world(self, row: int) -> World:
        """What a row plays in."""
        world = self.played[row]
        assert world.key == key_of(self.records[row])
        return world
