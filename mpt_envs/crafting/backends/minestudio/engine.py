"""One Minecraft, step by step: keys, camera, commands, and questions about blocks.

Only the public interface of `minestudio.simulator.MinecraftSim` is used, with its 'env' actions. A
step is one game tick. The simulator is made at the first reset, since starting Minecraft takes half
a minute.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from mpt_envs.crafting.backends.engine_errors import EngineDiedError, EngineError
from mpt_envs.crafting.backends.minestudio.install import find_installation
from mpt_envs.crafting.backends.minestudio.report import Report, read_report

#: The keys of an action, as MineStudio names them.
KEYS: Final = (
    "attack",
    "back",
    "forward",
    "jump",
    "left",
    "right",
    "sneak",
    "sprint",
    "use",
    *(f"hotbar.{number}" for number in range(1, 10)),
    "inventory",
)
#: MineStudio takes a box of blocks within so many of the body.
VOXEL_LIMIT: Final = 50
#: What a seed may be: MineStudio hands it to NumPy as well.
SEED_BITS: Final = 31

#: Run at the start of each episode: no night, rain, hunger or mobs, as in the embedded world.
SETTLING_COMMANDS: Final = (
    "/gamerule sendCommandFeedback false",
    "/difficulty peaceful",
    "/gamerule doDaylightCycle false",
    "/gamerule doWeatherCycle false",
    "/gamerule doMobSpawning false",
    "/time set 1000",
    "/weather clear",
    "/clear @p",
)

Box = tuple[int, int, int, int, int, int]


class BodyDied(Exception):
    """The body died, or Minecraft ended the episode, in the middle of a decision."""


def action_of(
    keys: Iterable[str] = (),
    camera: tuple[float, float] = (0.0, 0.0),
    voxels: Box | None = None,
    chat: str | None = None,
) -> dict[str, Any]:
    """A step's inputs as MineStudio's 'env' action.

    Args:
        keys: which of `KEYS` are down.
        camera: degrees of pitch (down) and yaw (to the right).
        voxels: x0, x1, y0, y1, z0, z1 in blocks from the body: which blocks to tell of.
        chat: a line of chat; a command begins with a slash.

    Raises:
        ValueError: there is no such key, or the box is larger than MineStudio takes.
    """
    action: dict[str, Any] = dict.fromkeys(KEYS, 0)
    for key in keys:
        if key not in action:
            raise ValueError(f"no key {key!r}; keys: {', '.join(KEYS)}")
        action[key] = 1
    action["camera"] = np.array(camera, np.float32)
    if voxels is not None:
        if max(map(abs, voxels)) > VOXEL_LIMIT:
            raise ValueError(f"a box of blocks must lie within {VOXEL_LIMIT}, got {voxels}")
        action["voxels"] = np.array(voxels, np.int32)
    if chat is not None:
        action["chat"] = chat
    return action


def start_simulator(**keywords: Any) -> Any:
    """A `MinecraftSim`; its engine is looked for before.

    Raises:
        EngineMissingError: something is missing.
    """
    find_installation()
    from minestudio.simulator import MinecraftSim

    return MinecraftSim(**keywords)


class Engine:
    """A simulator whose steps are counted and whose last report is kept.

    Args:
        biome: where the body starts.
        simulator: makes the simulator, called with the keywords of `MinecraftSim`.

    Attributes:
        ticks: steps since the last reset.
        report: what the last step told.
    """

    def __init__(self, biome: str, simulator: Callable[..., Any] = start_simulator) -> None:
        self._make = simulator
        self._picture: Any = None
        self._biome = biome
        self._sim: Any = None
        self.ticks = 0
        self.seed: int | None = None
        self._report: Report | None = None

    @property
    def started(self) -> bool:
        """Whether an episode runs."""
        return self._report is not None

    @property
    def report(self) -> Report:
        """What the last step told."""
        assert self._report is not None, "reset the engine first"
        return self._report

    @property
    def picture(self) -> Any:
        """What the body sees, ``uint8 (H, W, 3)``."""
        return self._picture

    def reset(self, seed: int) -> Report:
        """A new world.

        Args:
            seed: int of `SEED_BITS` bits; MineStudio forgets it at each reset, so it is told anew.
        """
        if self._sim is None:
            self._sim = self._make(
                action_type="env", seed=seed, preferred_spawn_biome=self._biome, callbacks=[]
            )
        self._report = None
        try:
            self._sim.env.seed(seed)
            image, info = self._sim.reset()
            self._report = read_report(info, False, False)
            self._picture = info.get("pov", image.get("image"))
            for command in SETTLING_COMMANDS:
                self.command(command)
        except (BodyDied, OSError, RuntimeError, TypeError) as error:
            self.close()
            if isinstance(error, EngineError):
                raise
            raise EngineError(
                f"Minecraft could not begin a new world ({type(error).__name__}: {error}); try the "
                "reset again, and see MineStudio's log if it fails again"
            ) from error
        self.seed = seed
        self.ticks = 0
        return self.report

    def step(
        self,
        *keys: str,
        camera: tuple[float, float] = (0.0, 0.0),
        voxels: Box | None = None,
        chat: str | None = None,
    ) -> Report:
        """One tick with some inputs; see `action_of`.

        Raises:
            BodyDied: the body is dead now.
            EngineDiedError: the connection to Minecraft was lost.
        """
        if self.report.over or self.report.dead:
            raise BodyDied
        try:
            image, _, terminated, truncated, info = self._sim.step(
                action_of(keys, camera, voxels, chat)
            )
        except (OSError, RuntimeError, TypeError) as error:
            # A TypeError is how MineStudio 1.1.6 loses its connection: it fails to make up the
            # observation that it would return then.
            self.close()
            raise EngineDiedError(
                f"Minecraft does not answer ({type(error).__name__}: {error}); reset the "
                "environment to start it again"
            ) from error
        self.ticks += 1
        try:
            self._report = read_report(info, bool(terminated or truncated), voxels is not None)
        except EngineDiedError:
            self.close()
            raise
        self._picture = info.get("pov", image.get("image"))
        if self.report.over or self.report.dead:
            raise BodyDied
        return self.report

    def command(self, command: str) -> Report:
        """One tick in which a command is run."""
        return self.step(chat=command)

    def wait(self, ticks: int) -> Report:
        """Some ticks without inputs."""
        for _ in range(ticks):
            self.step()
        return self.report

    def close(self) -> None:
        """End Minecraft. The engine can be reset again: it then starts another."""
        sim, self._sim, self._report, self.seed = self._sim, None, None, None
        if sim is not None:
            # It may be gone already.
            with contextlib.suppress(OSError, RuntimeError):
                sim.close()
