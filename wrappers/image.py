"""The image view: agents see the picture that a person would, as uint8 pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from wrappers.bid_then_act import BidThenActEnv
from wrappers.errors import MissingCapabilityError
from wrappers.game_snapshot import GameSnapshot
from wrappers.view import GameView


class ImageView(GameView):
    """The game with observation ``Dict(observation: uint8 (H, W, 3), action_mask: int8)``.

    The picture is the task's "rgb_array" with the last auction beside it; all agents see the same,
    and it says nothing about bids before they are resolved.

    Args:
        env: the game.
        size: height and width; the picture is averaged down (or repeated up) to it. None: as the
            task draws it.

    Raises:
        MissingCapabilityError: the task does not draw "rgb_array".
    """

    def __init__(
        self, env: BidThenActEnv | GameView, *, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(env)
        if "rgb_array" not in self.task.render_modes:
            raise MissingCapabilityError(
                f"{self.task.task_id} draws itself as {self.task.render_modes}; to be observed as "
                'an image it would have to draw "rgb_array"'
            )
        if size is not None and (len(size) != 2 or min(size) < 1):
            raise ValueError(f"size must be (height, width), both at least 1; got {size!r}")
        self._given_size = size
        if size is None:
            if self.game.episode < 0:
                # No episode has begun that this could disturb: the task is reset before each one.
                self.task.reset(0)
            size = self.game.render_as("rgb_array").shape[:2]
        self._shape = (int(size[0]), int(size[1]), 3)
        for agent in self.game.possible_agents:
            inner = env.observation_space(agent)
            assert isinstance(inner, spaces.Dict)
            self.observation_spaces[agent] = spaces.Dict(
                {
                    "observation": spaces.Box(0, 255, self._shape, np.uint8),
                    "action_mask": inner["action_mask"],
                }
            )
        self._drawn: tuple[tuple[int, str], NDArray[np.uint8]] | None = None

    def observe(self, agent: str) -> dict[str, NDArray[Any]]:
        """The picture and the agent's mask; fresh arrays."""
        inner: Any = self.env.observe(agent)
        return {"observation": self._picture().copy(), "action_mask": inner["action_mask"]}

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        """Start an episode; see `BidThenActEnv.reset`."""
        self._drawn = None
        super().reset(seed, options)

    def restore(self, snapshot: GameSnapshot) -> None:
        """Continue from a snapshot of the game or of any view of it."""
        self._drawn = None
        super().restore(snapshot)

    def _picture(self) -> NDArray[np.uint8]:
        """The picture of this phase, drawn once for all agents."""
        moment = (self.turn, self.phase)
        if self._drawn is None or self._drawn[0] != moment:
            picture = np.asarray(self.game.render_as("rgb_array"), np.uint8)
            self._drawn = (moment, resize(picture, self._shape[0], self._shape[1]))
        return self._drawn[1]

    def _rewrap(self, env: BidThenActEnv | GameView) -> ImageView:
        return ImageView(env, size=self._given_size or (self._shape[0], self._shape[1]))


def resize(picture: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """Resize a picture by averaging the pixels that fall together (or repeating, to enlarge).

    Args:
        picture: ``uint8 (H, W, 3)``.
        height, width: the new size.

    Returns:
        ``uint8 (height, width, 3)``; the picture itself if it has that size.
    """
    if picture.shape[:2] == (height, width):
        return picture
    result = picture.astype(np.float64)
    for axis, size in ((0, height), (1, width)):
        old = result.shape[axis]
        starts = np.arange(size) * old // size
        counts = np.maximum(1, np.diff(np.append(starts, old)))
        sums = np.add.reduceat(result, starts, axis=axis)
        result = sums / counts.reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
    return np.round(result).astype(np.uint8)
