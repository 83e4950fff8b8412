"""A double of `habitat_sim`: the part of its documented interface that the adapter uses.

The real simulator comes from conda only, so the suite cannot install it. This double walks on a
`FreeSpace` instead of a mesh, and follows the documentation and sources of habitat-sim 0.3 in what
the adapter has to get right: quaternions w, x, y, z (a list is read as x, y, z, w), float32 state,
left turns positive, -z ahead, `collided` in what `step` returns, no stop action, no collision
checks where there is no navigation mesh, one configuration with names that it checks.

`install` puts it in the place of the module.
"""

from __future__ import annotations

import math
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mpt_envs.navigation.world.space import FreeSpace

SPACES: dict[str, FreeSpace] = {}
"""The free space of each scene, by the stem of the scene's file."""


class quaternion:
    """Components w, x, y, z."""

    def __init__(self, w: float, x: float, y: float, z: float) -> None:
        self.w, self.x, self.y, self.z = (float(np.float32(v)) for v in (w, x, y, z))


class SimulatorConfiguration:
    """Takes only the properties that are documented, as the compiled class does."""

    __slots__ = (
        "allow_sliding",
        "create_renderer",
        "default_agent_id",
        "enable_physics",
        "gpu_device_id",
        "load_semantic_mesh",
        "random_seed",
        "requires_textures",
        "scene_dataset_config_file",
        "scene_id",
    )

    def __init__(self) -> None:
        self.scene_id = ""
        self.scene_dataset_config_file = "default"
        self.random_seed = 0
        self.allow_sliding = True
        self.gpu_device_id = 0
        self.default_agent_id = 0
        self.create_renderer = True
        self.enable_physics = False
        self.load_semantic_mesh = False
        self.requires_textures = True


@dataclass
class ActuationSpec:
    amount: float
    constraint: float | None = None


@dataclass
class ActionSpec:
    name: str
    actuation: ActuationSpec | None = None


@dataclass
class AgentConfiguration:
    height: float = 1.5
    radius: float = 0.1
    sensor_specifications: list[Any] = field(default_factory=list)
    action_space: dict[str, ActionSpec] = field(
        default_factory=lambda: {
            "move_forward": ActionSpec("move_forward", ActuationSpec(0.25)),
            "turn_left": ActionSpec("turn_left", ActuationSpec(10.0)),
            "turn_right": ActionSpec("turn_right", ActuationSpec(10.0)),
        }
    )
    body_type: str = "cylinder"


class SensorType:
    COLOR = "color"
    DEPTH = "depth"


class CameraSensorSpec:
    def __init__(self) -> None:
        self.uuid = ""
        self.sensor_type = SensorType.COLOR
        self.resolution = [128, 128]
        self.position = [0.0, 1.5, 0.0]
        self.hfov = 90.0


@dataclass
class Configuration:
    sim_cfg: SimulatorConfiguration
    agents: list[AgentConfiguration]


@dataclass
class AgentState:
    position: Any = field(default_factory=lambda: np.zeros(3))
    rotation: Any = field(default_factory=lambda: quaternion(1, 0, 0, 0))
    sensor_states: dict[str, Any] = field(default_factory=dict)


class ShortestPath:
    def __init__(self) -> None:
        self.requested_start: Any = np.zeros(3)
        self.requested_end: Any = np.zeros(3)
        self.geodesic_distance = math.inf
        self.points: list[Any] = []


class NavMeshSettings:
    def __init__(self) -> None:
        self.agent_height = 1.5
        self.agent_radius = 0.1


class PathFinder:
    def __init__(self, space: FreeSpace | None) -> None:
        self.space = space
        self._fields: dict[tuple[float, ...], Any] = {}

    @property
    def is_loaded(self) -> bool:
        return self.space is not None

    def snap_point(self, point: Any) -> Any:
        assert self.space is not None
        near = self.space.nearest(point, 2.0)
        return np.full(3, math.nan, np.float32) if near is None else near.astype(np.float32)

    def is_navigable(self, point: Any, max_y_delta: float = 0.5) -> bool:
        return self.space is not None and self.space.locate(point, max_y_delta) is not None

    def try_step(self, start: Any, end: Any) -> Any:
        assert self.space is not None
        at = self.space.locate(start)
        if at is None:
            return np.asarray(start, np.float32)
        dx, dz = float(end[0]) - float(start[0]), float(end[2]) - float(start[2])
        heading, amount = math.atan2(-dx, -dz), math.hypot(dx, dz)
        x, z, layer, _ = self.space.move(float(start[0]), float(start[2]), at[0], heading, amount)
        ix, iz = (
            int((value - origin) // self.space.cell)
            for value, origin in zip((x, z), self.space.origin, strict=True)
        )
        return np.array([x, self.space.heights[layer, iz, ix], z], np.float32)

    def find_path(self, path: ShortestPath) -> bool:
        assert self.space is not None
        path.geodesic_distance, path.points = math.inf, []
        end = self.space.nearest(path.requested_end, 2.0)
        start = self.space.nearest(path.requested_start, 2.0)
        if end is None or start is None:
            return False
        key = tuple(end.tolist())
        if key not in self._fields:
            self._fields[key] = self.space.distances_to(end)
        path.geodesic_distance = self.space.distance(self._fields[key], start)
        if not math.isfinite(path.geodesic_distance):
            return False
        path.points = [*self.space.path(self._fields[key], start, end)]
        return True

    def build_navmesh_vertices(self, island_index: int = -1) -> list[Any]:
        return [corner for triangle in self._triangles() for corner in triangle]

    def build_navmesh_vertex_indices(self, island_index: int = -1) -> list[int]:
        return list(range(3 * len(self._triangles())))

    def _triangles(self) -> list[Any]:
        """Two triangles a column."""
        assert self.space is not None
        cell, (x0, z0) = self.space.cell, self.space.origin
        found = []
        for layer, iz, ix in np.argwhere(np.isfinite(self.space.heights)).tolist():
            y = self.space.heights[layer, iz, ix]
            a, b, c, d = (
                np.array([x0 + (ix + i) * cell, y, z0 + (iz + k) * cell], np.float32)
                for i, k in ((0, 0), (1, 0), (1, 1), (0, 1))
            )
            found += [(a, b, c), (a, c, d)]
        return found


class Agent:
    def __init__(self, configuration: AgentConfiguration) -> None:
        self.configuration = configuration
        self._position = np.zeros(3, np.float32)
        self._rotation = quaternion(1, 0, 0, 0)

    def get_state(self) -> AgentState:
        q = self._rotation
        return AgentState(self._position.copy(), quaternion(q.w, q.x, q.y, q.z))

    def set_state(
        self,
        state: AgentState,
        reset_sensors: bool = True,
        infer_sensor_states: bool = True,
        is_initial: bool = False,
    ) -> None:
        position = np.asarray(state.position, np.float32)
        assert position.shape == (3,) and np.isfinite(position).all()
        rotation = state.rotation
        if isinstance(rotation, (list, np.ndarray)):
            x, y, z, w = rotation
            rotation = quaternion(w, x, y, z)
        length = rotation.w**2 + rotation.x**2 + rotation.y**2 + rotation.z**2
        if abs(length - 1) > 1e-4:
            raise ValueError("the rotation is not a unit quaternion")
        self._position, self._rotation = position.copy(), rotation


class Simulator:
    """One scene, one agent."""

    opened: list[Simulator] = []  # noqa: RUF012  (what tests look at)

    def __init__(self, config: Configuration) -> None:
        self.closed = False
        self.frames = 0
        self._set(config)
        Simulator.opened.append(self)

    def _set(self, config: Configuration) -> None:
        if not Path(config.sim_cfg.scene_id).is_file():
            raise RuntimeError(f"scene {config.sim_cfg.scene_id} not found")
        self.config = config
        config.sim_cfg.create_renderer = any(a.sensor_specifications for a in config.agents)
        stem = Path(config.sim_cfg.scene_id).name.split(".")[0]
        has_mesh = Path(config.sim_cfg.scene_id).with_suffix(".navmesh").is_file()
        self.pathfinder = PathFinder(SPACES[stem] if has_mesh else None)
        self._agents = [Agent(a) for a in config.agents]

    def reconfigure(self, config: Configuration) -> None:
        self._set(config)

    def recompute_navmesh(self, pathfinder: PathFinder, settings: NavMeshSettings) -> bool:
        pathfinder.space = SPACES[Path(self.config.sim_cfg.scene_id).name.split(".")[0]]
        return True

    def get_agent(self, agent_id: int) -> Agent:
        return self._agents[agent_id]

    def step(self, action: str, dt: float = 1 / 60) -> dict[str, Any]:
        assert not self.closed
        agent = self._agents[0]
        spec = agent.configuration.action_space[action]
        assert spec.actuation is not None
        collided = False
        if spec.name == "move_forward":
            collided = self._forward(agent, spec.actuation.amount)
        else:
            half = math.radians(spec.actuation.amount) / 2
            half *= {"turn_left": 1, "turn_right": -1}[spec.name]
            c, s, q = math.cos(half), math.sin(half), agent._rotation
            # q times a rotation about the body's own vertical axis
            w, x = q.w * c - q.y * s, q.x * c - q.z * s
            y, z = q.y * c + q.w * s, q.z * c + q.x * s
            length = math.sqrt(w * w + x * x + y * y + z * z)
            agent._rotation = quaternion(w / length, x / length, y / length, z / length)
        return {**self.get_sensor_observations(), "collided": collided}

    def _forward(self, agent: Agent, amount: float) -> bool:
        q = agent._rotation
        ahead = np.array([-2 * (q.x * q.z + q.w * q.y), 0.0, -1 + 2 * (q.x * q.x + q.y * q.y)])
        start = agent._position
        end = (start + amount * ahead).astype(np.float32)
        if not self.pathfinder.is_loaded:
            agent._position = end
            return False
        allowed = self.pathfinder.try_step(start, end)
        agent._position = allowed
        return bool(np.sum((allowed - start) ** 2) + 1e-5 < np.sum((end - start) ** 2))

    def get_sensor_observations(self) -> dict[str, Any]:
        self.frames += 1
        return {
            spec.uuid: np.full((*spec.resolution, 4), self.frames % 256, np.uint8)
            for spec in self._agents[0].configuration.sensor_specifications
        }

    def close(self, destroy: bool = True) -> None:
        self.closed = True


def install(spaces: dict[str, FreeSpace]) -> types.ModuleType:
    """Put the double in the place of `habitat_sim`."""
    module = types.ModuleType("habitat_sim")
    for name in (
        "ActionSpec",
        "ActuationSpec",
        "AgentConfiguration",
        "AgentState",
        "CameraSensorSpec",
        "Configuration",
        "NavMeshSettings",
        "SensorType",
        "ShortestPath",
        "Simulator",
        "SimulatorConfiguration",
    ):
        setattr(module, name, globals()[name])
    SPACES.clear()
    SPACES.update(spaces)
    Simulator.opened = []
    sys.modules["habitat_sim"] = module
    return module
