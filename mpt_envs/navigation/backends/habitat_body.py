"""A body in a scene of habitat-sim: everything that the adapter asks of the simulator.

Importing this module imports `habitat_sim`, which conda installs (it is not on the package index):
``conda install habitat-sim headless -c conda-forge -c aihabitat``.

The body is VLN-CE's: 1.5 m high, 0.1 m in radius, steps of 0.25 m and 15 degrees, sliding along
walls. Without a camera there is no renderer and no graphics context. The state of a body is its
position and rotation as the simulator holds them, seven float32; putting them back is exact. The
simulator's random generator is never drawn from.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import habitat_sim
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpt_envs.files import is_file
from mpt_envs.navigation.backends.navmesh import space_of_mesh
from mpt_envs.navigation.data.episodes import EpisodeDataError, named_folder
from mpt_envs.navigation.world.facts import BODY_RADIUS, STEP_ANGLE, STEP_LENGTH
from mpt_envs.navigation.world.space import FreeSpace

FORWARD: Final = "move_forward"
LEFT: Final = "turn_left"
RIGHT: Final = "turn_right"

BODY_HEIGHT: Final = 1.5
"""Metres; the camera is at this height too."""

SCENES_VARIABLE: Final = "MPT_HABITAT_SCENES"
"""Environment variable that names the folder of the scenes where no keyword does."""

SCENES_HOW_TO: Final = (
    "Get the Matterport3D scenes for Habitat (the README of facebookresearch/habitat-sim on GitHub "
    "says how), and pass scenes=FOLDER, or set the environment variable "
    f"{SCENES_VARIABLE}, where FOLDER holds mp3d/X/X.glb and X.navmesh beside it."
)

POSE_BYTES: Final = 28
"""Size of `Body.pose`: x, y, z and the quaternion w, x, y, z as float32."""


def scenes_folder(scenes: str | os.PathLike[str] | None) -> Path:
    """The folder of the scenes: the keyword's, or the environment variable's.

    Raises:
        EpisodeDataError: neither names a folder that exists.
    """
    needs = "the backend 'habitat' needs scenes."
    return named_folder("scenes", scenes, SCENES_VARIABLE, needs, SCENES_HOW_TO)


def scene_file(folder: Path, scene_id: str) -> Path:
    """The file of a scene, under the name in the episodes or a shorter one.

    Args:
        folder: of the scenes.
        scene_id: e.g. ``"mp3d/X/X.glb"``.

    Raises:
        EpisodeDataError: it is not there, or leads out of the folder.
    """
    parts = [part for part in scene_id.replace("\\", "/").split("/") if part]
    if ".." in parts:
        raise EpisodeDataError(f"the scene {scene_id!r} leads out of the folder of the scenes")
    for start in range(len(parts)):
        path = folder.joinpath(*parts[start:])
        if is_file(path, EpisodeDataError):
            return path
    raise EpisodeDataError(f"{folder} has no scene {scene_id!r}. {SCENES_HOW_TO}")


class Body:
    """One simulator, which opens one scene after the other.

    Args:
        scenes: folder of the scenes; None takes the environment variable's.
        resolution: height and width of the camera's picture; None: no camera.
        gpu_device: number of the graphics device; only used with a camera.

    Raises:
        EpisodeDataError: the folder does not exist.
    """

    def __init__(
        self,
        scenes: str | os.PathLike[str] | None = None,
        resolution: tuple[int, int] | None = None,
        gpu_device: int = 0,
    ) -> None:
        self.folder = scenes_folder(scenes)
        self.resolution = resolution
        self.gpu_device = gpu_device
        self.scene_id: str | None = None
        self._simulator: Any = None
        self._agent: Any = None
        self._spaces: dict[str, FreeSpace] = {}

    def open(self, scene_id: str) -> None:
        """Go to a scene.

        Raises:
            EpisodeDataError: its file is missing, or it has no navigation mesh.
        """
        if scene_id == self.scene_id:
            return
        configuration = self._configuration(scene_file(self.folder, scene_id))
        self.scene_id = None
        if self._simulator is None:
            self._simulator = habitat_sim.Simulator(configuration)
        else:
            self._simulator.reconfigure(configuration)
        if not self._simulator.pathfinder.is_loaded:
            raise EpisodeDataError(
                f"the scene {scene_id!r} has no navigation mesh, so nothing would stop the body: "
                f"its .navmesh file is missing beside the .glb file. {SCENES_HOW_TO}"
            )
        self._agent = self._simulator.get_agent(0)
        self.scene_id = scene_id

    def _configuration(self, path: Path) -> Any:
        backend = habitat_sim.SimulatorConfiguration()
        backend.scene_id = str(path)
        backend.random_seed = 0
        backend.allow_sliding = True
        backend.enable_physics = False
        backend.create_renderer = self.resolution is not None
        # -1 keeps the simulator away from graphics devices where there is nothing to draw.
        backend.gpu_device_id = -1 if self.resolution is None else self.gpu_device
        cameras = []
        if self.resolution is not None:
            camera = habitat_sim.CameraSensorSpec()
            camera.uuid = "rgb"
            camera.sensor_type = habitat_sim.SensorType.COLOR
            camera.resolution = list(self.resolution)
            camera.position = [0.0, BODY_HEIGHT, 0.0]
            cameras.append(camera)
        actions = {
            name: habitat_sim.ActionSpec(name, habitat_sim.ActuationSpec(amount=amount))
            for name, amount in (
                (FORWARD, STEP_LENGTH),
                (LEFT, float(STEP_ANGLE)),
                (RIGHT, float(STEP_ANGLE)),
            )
        }
        agent = habitat_sim.AgentConfiguration(
            height=BODY_HEIGHT,
            radius=BODY_RADIUS,
            sensor_specifications=cameras,
            action_space=actions,
        )
        return habitat_sim.Configuration(backend, [agent])

    # -- the body ----------------------------------------------------------------------------

    def place(self, position: ArrayLike, heading: float) -> None:
        """Put the body somewhere.

        Args:
            position: ``(3,)`` metres.
            heading: radians, 0 looks along -z, growing to the left.
        """
        half = heading / 2
        self._set(np.asarray(position, np.float32), (math.cos(half), 0.0, math.sin(half), 0.0))

    def _set(self, position: NDArray[np.float32], wxyz: Sequence[float]) -> None:
        w, x, y, z = (float(np.float32(v)) for v in wxyz)
        state = habitat_sim.AgentState()
        state.position = position
        state.rotation = [x, y, z, w]  # the simulator reads lists in this order
        self._agent.set_state(state)

    def step(self, action: str) -> bool:
        """One primitive step (`FORWARD`, `LEFT`, `RIGHT`); returns whether the body collided."""
        return bool(self._simulator.step(action)["collided"])

    @property
    def position(self) -> NDArray[np.float32]:
        """``float32 (3,)`` metres."""
        return np.array(self._agent.get_state().position, np.float32)

    @property
    def heading(self) -> float:
        """Radians in [0, 2 pi)."""
        q = self._agent.get_state().rotation
        return 2 * math.atan2(q.y, q.w) % (2 * math.pi)

    @property
    def pose(self) -> bytes:
        """All of the body's state, `POSE_BYTES`."""
        state = self._agent.get_state()
        q = state.rotation
        return np.array([*state.position, q.w, q.x, q.y, q.z], np.float32).tobytes()

    @pose.setter
    def pose(self, value: bytes) -> None:
        numbers = check_pose(value)
        self._set(numbers[:3], numbers[3:].tolist())

    # -- the scene ---------------------------------------------------------------------------

    def distance(self, start: ArrayLike, goal: ArrayLike) -> float:
        """Geodesic distance on the navigation mesh in metres; inf: no way."""
        path = habitat_sim.ShortestPath()
        path.requested_start = np.asarray(start, np.float32)
        path.requested_end = np.asarray(goal, np.float32)
        self._simulator.pathfinder.find_path(path)
        return float(path.geodesic_distance)

    def space(self) -> FreeSpace:
        """The scene's navigation mesh as a heightfield, for observations and plans."""
        assert self.scene_id is not None, "open a scene first"
        space = self._spaces.get(self.scene_id)
        if space is None:
            finder = self._simulator.pathfinder
            space = self._spaces[self.scene_id] = space_of_mesh(
                np.asarray(finder.build_navmesh_vertices(), np.float64),
                np.asarray(finder.build_navmesh_vertex_indices(), np.int64),
            )
        return space

    def picture(self) -> NDArray[np.uint8]:
        """What the camera sees: ``uint8 (height, width, 3)``."""
        assert self.resolution is not None, "there is no camera"
        seen = np.asarray(self._simulator.get_sensor_observations()["rgb"])
        return np.ascontiguousarray(seen[..., :3], np.uint8)

    def close(self) -> None:
        """Release the simulator; it is opened again when needed."""
        if self._simulator is not None:
            self._simulator.close()
        self._simulator = self._agent = None
        self.scene_id = None


def check_pose(value: bytes) -> NDArray[np.float32]:
    """The numbers of a pose: ``float32 (7,)``.

    Raises:
        ValueError: it has the wrong size, or is no place and rotation.
    """
    if len(value) != POSE_BYTES:
        raise ValueError(f"a pose has {POSE_BYTES} bytes, got {len(value)}")
    numbers = np.frombuffer(value, np.float32)
    if not np.isfinite(numbers).all() or abs(float((numbers[3:] ** 2).sum()) - 1.0) > 1e-3:
        raise ValueError("the numbers of the pose are no place and rotation")
    return numbers
