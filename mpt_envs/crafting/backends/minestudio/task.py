"""`MineStudioTask`: one world of the crafting domain in Minecraft, as a turn task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.crafting.backends.engine_errors import EngineError
from mpt_envs.crafting.backends.engine_task import EngineTask
from mpt_envs.crafting.backends.minestudio.body import Body
from mpt_envs.crafting.backends.minestudio.crafters import CRAFTING_MODES, make_crafter
from mpt_envs.crafting.backends.minestudio.engine import (
    SEED_BITS,
    BodyDied,
    Engine,
    start_simulator,
)
from mpt_envs.crafting.backends.minestudio.install import find_installation
from mpt_envs.crafting.backends.minestudio.planner import Planner
from mpt_envs.crafting.backends.minestudio.report import obtained
from mpt_envs.crafting.backends.minestudio.snapshots import (
    PAYLOAD_VERSION,
    State,
    block_commands,
    body_command,
    check_snapshot,
    furnace_commands,
    inventory_commands,
    pack,
    seen_differences,
    seen_digest,
)
from mpt_envs.crafting.backends.minestudio.window import Window
from mpt_envs.crafting.rules.perception import perceive
from mpt_envs.crafting.rules.turn import add_event
from mpt_envs.crafting.world import layout as at
from mpt_envs.crafting.world.facts import MAX_HEALTH, PICKAXES, REGENERATION_TICKS
from wrappers.errors import MissingCapabilityError, PhaseError, SnapshotError
from wrappers.rng import episode_key, hash4
from wrappers.task import Snapshot

#: Game ticks of an episode, by goal: three times the embedded world's. Aiming, clicking and picking
#: up take ticks here that they do not take there; nobody has measured how many for the expert.
TICK_BUDGETS: Final = {
    "iron-pickaxe": 8100,
    "stone-pickaxe": 2100,
    "wooden-pickaxe": 1200,
    "crafting-table": 600,
    "furnace": 2700,
    "torch": 4050,
    "stone-bricks": 7050,
}

STREAM_WORLD: Final = 1200  # seed of Minecraft's world

_RESTORE_TRIES: Final = 3
_LOAD_TICKS: Final = 20  # until the chunks around a body that was moved are there
_BEGIN_TICKS: Final = 10


class MineStudioTask(EngineTask):
    """One goal of the crafting domain in Minecraft, through MineStudio.

    Roles, actions, observation, reward, text and pictures are those of
    `mpt_envs.crafting.task.CraftingTask`, which reads them from a record; here the record says what
    MineStudio has told of the blocks around the body (`window`). What an action does is Minecraft's
    affair. Minecraft is started at the first reset or restore.

    Args:
        goal: one of `goals.GOAL_NAMES`.
        tick_budget: game ticks of an episode; None takes the goal's of `TICK_BUDGETS`.
        crafting_mode: "gui" or "command"; see `crafters`.
        biome: where episodes start.
        simulator: makes the simulator, called with the keywords of `MinecraftSim`; None: that class
            itself. A function of your own can add callbacks, e.g. to record films.

    Attributes:
        crafting_mode, biome: as given.

    Raises:
        EngineMissingError: MineStudio or its engine is not here.
        ValueError: there is no such goal or crafting mode.
    """

    snapshot_version = PAYLOAD_VERSION
    snapshot_fidelity = "approximate"
    tick_budgets = TICK_BUDGETS

    def __init__(
        self,
        goal: str = "iron-pickaxe",
        *,
        tick_budget: int | None = None,
        crafting_mode: str = "gui",
        biome: str = "forest",
        simulator: Callable[..., Any] | None = None,
    ) -> None:
        if crafting_mode not in CRAFTING_MODES:
            raise ValueError(f"crafting_mode must be 'gui' or 'command', got {crafting_mode!r}")
        if simulator is None:
            find_installation()
        super().__init__(goal, tick_budget)
        self.crafting_mode = crafting_mode
        self.biome = biome
        self._simulator = simulator
        self._engine = Engine(biome, simulator or start_simulator)
        self._window = Window(self.record)
        self._body = Body(self._engine, self._window, self.record)
        self._planner = Planner(self._body, make_crafter(crafting_mode, self._body), self.record)

    @property
    def pov(self) -> NDArray[np.uint8]:
        """What Minecraft shows to the body now: ``uint8 (H, W, 3)``."""
        self._check_started()
        picture: NDArray[np.uint8] = np.asarray(self._engine.picture, np.uint8).copy()
        return picture

    def _check_started(self) -> None:
        if not self._engine.started:
            raise PhaseError(f"call reset() before playing {self.task_id} in Minecraft")

    # -- dynamics ----------------------------------------------------------------------------

    def reset(self, seed: int, episode: int = 0, options: Mapping[str, Any] | None = None) -> None:
        """Make a world of Minecraft. There are no options.

        Raises:
            EngineError: Minecraft cannot be started, or dies.
        """
        key = episode_key(seed, episode)
        world = int(hash4(key, np.uint64(0), STREAM_WORLD, 0)) & ((1 << SEED_BITS) - 1)
        report = self._engine.reset(world)
        self._fill(key, at.LAYOUT_VERSION)
        self._window.begin(report.feet)
        self._planner.table = self._planner.furnace = None
        self._body.wear = {}
        self._alive(lambda: self._engine.wait(_BEGIN_TICKS))
        self._alive(self._body.settle)
        self._alive(self._body.look_around)
        # The clock starts when the body can act.
        self._planner.start = self._engine.ticks
        self._write()

    def _alive(self, what: Callable[[], Any]) -> None:
        """Do something between turns, in which no body can die."""
        try:
            what()
        except BodyDied as died:
            self._engine.close()
            raise EngineError("the body died before it could act; reset the environment") from died

    def _write(self) -> None:
        """Bring the record up to the last report, and perceive."""
        s = self._s
        self._planner.write_stations()
        self._planner.now()
        self._planner.write_inventory()
        # Health regenerates: wounds are the ticks that it takes.
        lost = MAX_HEALTH - self._engine.report.health
        s[at.WOUND] = int(max(0.0, min(lost, MAX_HEALTH)) * REGENERATION_TICKS)
        perceive(s, self.record)
        self.changed()

    def _turn(self, role: int, action: int) -> int:
        self._check_started()
        s = self._s
        tick, seen, before = int(s[at.TICK]), int(s[at.SEEN]), self._engine.report
        died = False
        outcome = at.OUTCOME_DONE if role >= 0 else at.OUTCOME_SKIPPED
        try:
            outcome = self._planner.decide(role, action)
            self._body.look_around()
        except BodyDied:
            died = True
        after = self._engine.report
        for item in obtained(before, after):
            s[at.SEEN] |= 1 << item
        self._write()
        hurt = round(before.health - after.health)
        if hurt > 0:
            add_event(s, at.EVENT_HURT, 0, hurt)
        return self._finish(role, action, outcome, tick, seen, died)

    # -- state -------------------------------------------------------------------------------

    def _state(self) -> State:
        report = self._engine.report
        assert self._engine.seed is not None
        return State(
            self._engine.seed,
            self._window.origin,
            report.place,
            report.yaw,
            report.pitch,
            report.slots,
            self._planner.table,
            self._planner.furnace,
            self._window.changes,
            self.record,
        )

    def snapshot(self) -> Snapshot:
        """What was seen of the present state; restoring it is approximate (see `snapshots`)."""
        self._check_started()
        return Snapshot(self.task_id, PAYLOAD_VERSION, pack(self._state()), "approximate")

    def restore(self, snapshot: Snapshot) -> None:
        """Bring a state back by commands, and compare what can be seen.

        Raises:
            SnapshotError: it is corrupt, or belongs to another task, backend or version; then the
                state is unchanged. Or Minecraft did not become what was seen when it was taken;
                then the environment must be reset.
            EngineError: Minecraft cannot be started, or dies.
        """
        state = check_snapshot(snapshot, self._goal)
        if self._engine.started and snapshot.payload == pack(self._state()):
            return
        fresh = self._engine.seed != state.seed or not self._engine.started
        if not fresh and (self._engine.report.dead or self._engine.report.over):
            fresh = True
        if fresh:
            self._engine.reset(state.seed)
            self._window.changes.clear()
        current = dict(self._window.changes)
        differences: list[str] = []
        for attempt in range(_RESTORE_TRIES):
            commands = block_commands(state.changes, current, trust=attempt == 0)
            self._alive(partial(self._become, state, commands))
            differences = seen_differences(
                state.record, state.origin, self.record, self._window.origin
            )
            if not differences:
                break
            if attempt == _RESTORE_TRIES - 2 and not fresh:
                # The last resort: the same world made anew.
                self._engine.reset(state.seed)
                current = {}
        if differences:
            self._engine.close()
            raise SnapshotError(
                f"Minecraft did not become what this snapshot of {self.task_id!r} has seen: "
                f"{'; '.join(differences)}. Reset the environment; snapshots of this backend are "
                "approximate"
            )
        assert seen_digest(state.record, state.origin) == seen_digest(
            self.record, self._window.origin
        )

    def _become(self, state: State, blocks: list[str]) -> None:
        """Run the commands of a restore, look around, and write the record of the state.

        Args:
            state: what to become.
            blocks: the commands that set its blocks.
        """
        engine = self._engine
        # A spectator neither falls nor suffocates while the world is put right.
        engine.command("/gamemode spectator @p")
        engine.command(body_command(state))
        engine.wait(_LOAD_TICKS)
        for command in (*blocks, *furnace_commands(state), "/kill @e[type=item]"):
            engine.command(command)
        engine.command(body_command(state))
        engine.command("/gamemode survival @p")
        for command in inventory_commands(state):
            engine.command(command)
        engine.command("/effect give @p minecraft:instant_health 1 4")
        engine.command(body_command(state))
        engine.wait(2)
        self.record[:] = state.record
        self._window.resume(state.origin, dict(state.changes))
        self._planner.table, self._planner.furnace = state.table, state.furnace
        self._body.wear = dict(zip(PICKAXES, state.wear, strict=True))
        self._body.look_around()
        self._planner.start = engine.ticks - int(self._s[at.TICK])
        done = int(self._s[at.DONE])
        self._write()
        self._s[at.DONE] = done

    def reseed(self, key: int) -> None:
        """Minecraft's random numbers cannot be changed.

        Raises:
            MissingCapabilityError: always.
        """
        raise MissingCapabilityError(
            f"{self.task_id} in Minecraft cannot change its random numbers within an episode"
        )

    @property
    def _begun(self) -> bool:
        return self._engine.started

    def _keywords(self) -> dict[str, Any]:
        own = {"crafting_mode": self.crafting_mode, "biome": self.biome}
        return {**super()._keywords(), **own, "simulator": self._simulator}

    def close(self) -> None:
        """End Minecraft. The task can go on after a reset or restore, which start another."""
        self._engine.close()
