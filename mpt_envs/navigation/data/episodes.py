"""Episodes of R2R in continuous environments, read from the user's files.

The files are those of VLN-CE's release R2R_VLNCE_v1-3 (Krantz et al., "Beyond the Nav-Graph", 2020)
and are never part of this project. A folder may hold them as released,
``val_unseen/val_unseen.json.gz`` beside ``val_unseen/val_unseen_gt.json.gz``, or all in one place,
``val_unseen.json.gz`` beside ``val_unseen_gt.json.gz``; unpacked ``.json`` is read too.

Frame: Habitat's, metres, y up. A heading is the angle in radians by which the agent is turned to
the left, seen from above; at heading 0 it looks along -z.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mpt_envs.files import is_file, is_folder, user_path
from mpt_envs.navigation.world.sources import Episode
from mpt_envs.splits import split_of
from wrappers.errors import MarketError
from wrappers.rng import STREAM_DOMAIN, episode_key, hash4

SPLITS: Final = ("train", "val_seen", "val_unseen")

DATA_VARIABLE: Final = "MPT_R2R_DATA"
"""Environment variable that names the folder of the files where no keyword does."""

SPLIT_VARIABLE: Final = "MPT_R2R_SPLIT"
"""Environment variable that names the split where no keyword does; without it "val_unseen"."""

HOW_TO_GET: Final = (
    "Get R2R_VLNCE_v1-3 (or its _preprocessed form) as the README of jacobkrantz/VLN-CE on GitHub "
    f"describes, unpack it, and pass data=FOLDER or set the environment variable {DATA_VARIABLE}."
)

FARTHEST: Final = 10_000.0
"""Coordinates are at most this far from the origin, in metres; scans are some tens wide."""

_LARGEST_RADIUS: Final = 20.0
"""Metres; R2R's radius of success is 3."""

_LEAST_WAY: Final = 0.5
"""Metres from start to goal; rewards are shares of that way. R2R's ways have 4 m and more."""

STREAM_CHOICE: Final = np.uint64(STREAM_DOMAIN + 400)
"""Stream of the draw that chooses the episode."""


class EpisodeDataError(MarketError, ValueError):
    """The user's files of episodes or scenes are missing, damaged, or not what they should be."""


@dataclass(frozen=True, eq=False)
class R2REpisode:
    """One instruction to follow.

    Attributes:
        episode_id: the id in the file.
        trajectory_id: episodes of one trajectory have the same path and different instructions.
        scan: the scene's name, e.g. ``"zsNo4HB9uLZ"``.
        scene_id: the scene's file as the episodes name it, e.g. ``"mp3d/X/X.glb"``.
        instruction: what the agent reads.
        start: ``float64 (3,)`` metres.
        heading: radians, see the top of this file.
        goal: ``float64 (3,)`` metres.
        radius: metres within which a stop is a success.
        geodesic: shortest way from start to goal on the scene's mesh, in metres, from the file.
        reference_path: ``float64 (K, 3)``: the viewpoints that the instruction describes.
        locations: ``float64 (R, 3)``: the ground truth's position after each step forward.
        actions: ``int8 (A,)``: the ground truth's steps: 0 stop, 1 forward, 2 left, 3 right.
    """

    episode_id: str
    trajectory_id: str
    scan: str
    scene_id: str
    instruction: str
    start: NDArray[np.float64]
    heading: float
    goal: NDArray[np.float64]
    radius: float
    geodesic: float
    reference_path: NDArray[np.float64]
    locations: NDArray[np.float64]
    actions: NDArray[np.int8]

    def placed(self, scene_id: str, start: NDArray[np.float64]) -> Episode:
        """The episode in a scene of the simulator.

        Args:
            scene_id: of the scene.
            start: ``float64 (3,)``, where the scene's space has the start.
        """
        return Episode(
            id=self.episode_id,
            scene_id=scene_id,
            start=start,
            heading=self.heading,
            goal=self.goal,
            radius=self.radius,
            instruction=self.instruction,
            reference=self.locations,
            described=self.reference_path,
        )


def data_folder(data: str | os.PathLike[str] | None) -> Path:
    """The folder of the files: the keyword's, or the environment variable's.

    Raises:
        EpisodeDataError: neither names a folder that exists.
    """
    needs = "navigation/r2r-v0 needs the episodes of R2R-CE."
    return named_folder("data", data, DATA_VARIABLE, needs, HOW_TO_GET)


def named_folder(
    keyword: str, value: str | os.PathLike[str] | None, variable: str, needs: str, how_to_get: str
) -> Path:
    """The folder that a keyword names, or else an environment variable.

    Args:
        keyword, value: of the caller; None: the variable counts.
        variable: name of the environment variable.
        needs, how_to_get: first and last sentence of the message.

    Raises:
        EpisodeDataError: neither names a folder that exists.
    """
    named = os.environ.get(variable) if value is None else value
    if named is None or named == "":
        raise EpisodeDataError(f"{needs} {how_to_get}")
    path = user_path(keyword if value is not None else variable, named, EpisodeDataError)
    if not is_folder(path, EpisodeDataError):
        source = f"{keyword}={str(value)!r}" if value is not None else f"{variable}={named!r}"
        raise EpisodeDataError(f"{source} is not a folder. {how_to_get}")
    return path


def chosen_split(split: str | None) -> str:
    """The split: the keyword's, or the environment variable's, or "val_unseen".

    Raises:
        ValueError: there is no such split.
    """
    named = os.environ.get(SPLIT_VARIABLE) or "val_unseen" if split is None else split
    if named not in SPLITS:
        source = "split" if split is not None else SPLIT_VARIABLE
        raise ValueError(f"{source} must be one of {', '.join(SPLITS)}; got {named!r}")
    return named


def find_file(folder: Path, places: Iterable[str]) -> Path | None:
    """The first of these names that exists in the folder, as ``.json.gz`` or ``.json``."""
    for place in places:
        for suffix in (".json.gz", ".json"):
            path = folder / f"{place}{suffix}"
            if is_file(path, EpisodeDataError):
                return path
    return None


def read_json(path: Path) -> Any:
    """Read a ``.json`` or ``.json.gz`` file.

    Raises:
        EpisodeDataError: it cannot be read, or is not (compressed) JSON.
    """
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":  # by content: some archives unpack files and keep their names
            raw = gzip.decompress(raw)
        return json.loads(raw)
    except OSError as error:
        raise EpisodeDataError(
            f"{path} cannot be read ({error}). If it is damaged, get it again. {HOW_TO_GET}"
        ) from error
    except (
        EOFError,
        zlib.error,
        ValueError,  # of the decoder, of the codec, and of numbers with thousands of digits
        RecursionError,
        MemoryError,
    ) as error:
        raise EpisodeDataError(
            f"{path} is damaged or not JSON ({type(error).__name__}: {error}); get it again. "
            f"{HOW_TO_GET}"
        ) from error


def _split_file(folder: Path, split: str, ending: str, what: str) -> Path:
    name = f"{split}{ending}"
    path = find_file(folder, (name, f"{split}/{name}"))
    if path is None:
        raise EpisodeDataError(
            f"{folder} holds no {what} of the split {split!r}: neither {name}.json.gz nor "
            f"{split}/{name}.json.gz. {HOW_TO_GET}"
        )
    return path


def _numbers(value: Any, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """Finite numbers of a shape (None: at least one); ValueError otherwise."""
    array = np.array(value, np.float64)
    fits = array.ndim == len(shape) and all(
        size == wanted if wanted is not None else size > 0
        for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits or not np.isfinite(array).all():
        raise ValueError(f"expected finite numbers of shape {shape}, got {str(value)[:80]}")
    array.flags.writeable = False
    return array


def _place(value: Any, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    """Coordinates in metres; ValueError if some are not in this world."""
    places = _numbers(value, shape)
    if np.abs(places).max() > FARTHEST:
        raise ValueError(f"a place is more than {FARTHEST:.0f} m from the origin")
    return places


def _between(value: Any, low: float, high: float, what: str) -> float:
    """A number in a range; ValueError otherwise."""
    number = float(_numbers([value], (1,))[0])
    if not low <= number <= high:
        raise ValueError(f"its {what} is {number:g}, not from {low:g} to {high:g} m")
    return number


def heading_of(rotation: NDArray[np.float64]) -> float:
    """Heading in [0, 2 pi) of a rotation about the vertical axis.

    Args:
        rotation: ``(4,)`` unit quaternion x, y, z, w.

    Raises:
        ValueError: it is no rotation about the vertical axis.
    """
    x, y, z, w = rotation.tolist()
    if abs(x) > 1e-3 or abs(z) > 1e-3 or abs(y * y + w * w - 1) > 1e-2:
        raise ValueError(f"start_rotation {[x, y, z, w]} does not turn about the vertical axis")
    return 2 * math.atan2(y, w) % (2 * math.pi)


def scan_of(scene_id: str) -> str:
    """A scene's name from its file's: the folder's or the file's name, without suffix."""
    return scene_id.replace("\\", "/").rsplit("/", 1)[-1].split(".")[0]


def _episode(raw: Mapping[str, Any], truth: Mapping[str, Any]) -> R2REpisode:
    """Make one episode; KeyError, TypeError or ValueError if something is not as it should be."""
    goals = raw["goals"]
    if len(goals) != 1:
        raise ValueError(f"it has {len(goals)} goals instead of 1")
    instruction = raw["instruction"]["instruction_text"]
    if not isinstance(instruction, str) or not instruction.strip():
        raise ValueError("its instruction is empty")
    scan = scan_of(raw["scene_id"])
    if not scan:
        raise ValueError(f"its scene_id {raw['scene_id']!r} names no scene")
    actions = np.array(truth["actions"], np.int8)
    if actions.ndim != 1 or not np.isin(actions, (0, 1, 2, 3)).all():
        raise ValueError("its ground truth has an action that is not 0, 1, 2 or 3")
    start, goal = _place(raw["start_position"], (3,)), _place(goals[0]["position"], (3,))
    if np.linalg.norm(goal - start) < _LEAST_WAY:
        raise ValueError(f"its goal is less than {_LEAST_WAY:g} m from its start")
    return R2REpisode(
        episode_id=str(raw["episode_id"]),
        trajectory_id=str(raw["trajectory_id"]),
        scan=scan,
        scene_id=raw["scene_id"],
        instruction=" ".join(instruction.split()),
        start=start,
        heading=heading_of(_numbers(raw["start_rotation"], (4,))),
        goal=goal,
        radius=_between(goals[0]["radius"], 0.1, _LARGEST_RADIUS, "radius of success"),
        geodesic=_between(raw["info"]["geodesic_distance"], 0.0, FARTHEST, "geodesic_distance"),
        reference_path=_place(raw["reference_path"], (None, 3)),
        locations=_place(truth["locations"], (None, 3)),
        actions=actions,
    )


def load_split(data: str | os.PathLike[str] | None, split: str | None) -> tuple[R2REpisode, ...]:
    """All episodes of a split, in the file's order.

    Args:
        data: folder of the files; None takes the environment variable's.
        split: one of `SPLITS`; None takes the environment variable's, or "val_unseen".

    Raises:
        ValueError: there is no such split.
        EpisodeDataError: a file is missing, damaged, or not what it should be.
    """
    split = chosen_split(split)
    folder = data_folder(data)
    path = _split_file(folder, split, "", "episodes")
    truth_path = _split_file(folder, split, "_gt", "ground truth")
    content, truth = read_json(path), read_json(truth_path)
    if not isinstance(content, dict) or not isinstance(content.get("episodes"), list):
        raise EpisodeDataError(f'{path} is not a file of episodes: it has no list "episodes"')
    if not isinstance(truth, dict):
        raise EpisodeDataError(f"{truth_path} is not a file of ground truth: it is no object")
    if not content["episodes"]:
        raise EpisodeDataError(f"{path} has no episodes; get it again. {HOW_TO_GET}")
    episodes: dict[str, R2REpisode] = {}
    for index, raw in enumerate(content["episodes"]):
        id = raw.get("episode_id", index) if isinstance(raw, dict) else index  # noqa: A001
        if str(id) not in truth:
            raise EpisodeDataError(
                f"{truth_path} has no ground truth of episode {id}; are both files of the same "
                "release?"
            )
        try:
            episode = _episode(raw, truth[str(id)])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise EpisodeDataError(
                f"episode {id} of {path} (or its ground truth) is not as it should be: {what}"
            ) from error
        if episode.episode_id in episodes:
            raise EpisodeDataError(f"{path} has two episodes {id}")
        episodes[episode.episode_id] = episode
    return tuple(episodes.values())


def scan_names(scans: str | Iterable[str]) -> tuple[str, ...]:
    """Names of scenes as given by a user: one, or several.

    Raises:
        TypeError: these are no names.
    """
    names = (scans,) if isinstance(scans, str) else scans
    if not isinstance(names, Iterable):
        raise TypeError(f"scans must be names of scenes, got {scans!r}")
    found = tuple(names)
    if not all(isinstance(name, str) for name in found):
        raise TypeError(f"scans must be names of scenes, got {found!r}")
    return found


def _parts(episodes: Sequence[R2REpisode]) -> tuple[NDArray[np.int64], ...]:
    """See `EpisodeSet.parts`; which one a trajectory is in depends on its id alone."""
    tenths = np.array(
        [
            hashlib.blake2b(e.trajectory_id.encode(), digest_size=8).digest()[0] % 10
            for e in episodes
        ]
    )
    parts = tuple(map(np.flatnonzero, (tenths < 8, tenths == 8, tenths == 9)))
    if min(map(len, parts)) == 0:
        return (np.arange(len(episodes)),) * 3
    return parts


def _draw(key: int, count: int) -> int:
    """A number below a count, all equally likely, for a random key."""
    return int(hash4(np.uint64(key), np.uint64(0), STREAM_CHOICE, np.uint64(0))) % count


class EpisodeSet:
    """Episodes to play, chosen by a random key, by id, or in order.

    Args:
        episodes: at least one.
        scans: names of the scenes to keep; None keeps all.
        keep: further condition on an episode.

    Attributes:
        episodes: those that are left.
        scans: their scenes.
        parts: indices for training, development and evaluation (`mpt_envs.splits`): eight tenths,
            one and one of the trajectories, whose instructions stay together; all of them for each
            where there are too few for that.

    Raises:
        ValueError: no episode is left, or a scene is named that has none.
    """

    def __init__(
        self,
        episodes: Iterable[R2REpisode],
        scans: Iterable[str] | None = None,
        keep: Callable[[R2REpisode], bool] | None = None,
    ) -> None:
        everything = tuple(episodes)
        known = sorted({episode.scan for episode in everything})
        if scans is not None:
            wanted = scan_names(scans)
            for scene in wanted:
                if scene not in known:
                    raise ValueError(
                        f"no episode is in the scene {scene!r}; scenes: {', '.join(known)}"
                    )
            everything = tuple(e for e in everything if e.scan in wanted)
        if keep is not None:
            everything = tuple(e for e in everything if keep(e))
        if not everything:
            raise ValueError("no episode is left to play; loosen the filters")
        self.episodes = everything
        self.scans = tuple(sorted({episode.scan for episode in everything}))
        self._index = {episode.episode_id: i for i, episode in enumerate(everything)}
        self.parts = _parts(everything)

    def __len__(self) -> int:
        return len(self.episodes)

    def __getitem__(self, index: int) -> R2REpisode:
        return self.episodes[index]

    def choose(self, key: int) -> int:
        """Index of the episode of a random key; all are equally likely."""
        return _draw(key, len(self))

    def leave_out(self, ids: Collection[str], folder: Path) -> int:
        """Never draw these episodes; says so, and returns how many they are.

        Raises:
            EpisodeDataError: none would be left.
        """
        lost = [e.episode_id for e in self.episodes if e.episode_id in ids]
        if not lost:
            return 0
        if len(lost) == len(self):
            raise EpisodeDataError(
                f"none of the {len(self)} episodes in {folder} can be played on these graphs; are "
                "episodes and graphs of the same release?"
            )
        warnings.warn(
            f"{len(lost)} of the {len(self)} episodes in {folder} cannot be played on these graphs "
            f"and are left out (ids {', '.join(lost[:5])}{', ...' if len(lost) > 5 else ''})",
            stacklevel=4,
        )
        left = np.array([e.episode_id not in ids for e in self.episodes])
        parts = tuple(part[left[part]] for part in self.parts)
        self.parts = parts if min(map(len, parts)) else (np.flatnonzero(left),) * 3
        return len(lost)

    def key_for(self, seed: int, episode: int) -> int:
        """The index, which is a key, of an episode from the part of the seed."""
        part = self.parts[split_of(seed)]
        return int(part[_draw(int(episode_key(seed, episode)), len(part))])

    def index_of(self, episode_id: object) -> int:
        """Index of the episode of an id (a string or a number).

        Raises:
            ValueError: there is none.
        """
        index = self._index.get(str(episode_id))
        if index is None:
            ids = list(self._index)
            shown = ", ".join(ids[:5]) + (", ..." if len(ids) > 5 else "")
            raise ValueError(
                f"there is no episode {episode_id!r} among the {len(ids)} of this task ({shown}); "
                "check split= and scans="
            )
        return index
