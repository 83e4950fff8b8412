"""Flattening of observations: order, bounds, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from wrappers.flatten import FlatObservation


def test_parts_come_in_the_order_of_the_space() -> None:
    space = spaces.Dict(
        {
            "a": spaces.Box(-2, 5, (2, 2), np.float64),
            "b": spaces.Tuple([spaces.Discrete(3, start=1), spaces.MultiDiscrete([2, 2])]),
            "c": spaces.MultiBinary(2),
        }
    )
    flat = FlatObservation(space)
    vector = flat(
        {
            "a": np.array([[1.0, 2.0], [3.0, -2.0]]),
            "b": (2, np.array([1, 0])),
            "c": np.array([0, 1], np.int8),
        }
    )
    assert vector.dtype == np.float32
    assert vector.tolist() == [1, 2, 3, -2, 0, 1, 0, 0, 1, 1, 0, 0, 1]
    assert (flat.size, flat.low, flat.high, flat.dropped) == (13, -2.0, 5.0, ())


@pytest.mark.parametrize("seed", range(20))
def test_samples_fit_and_stay_in_the_bounds(seed: int) -> None:
    space = spaces.Tuple(
        [
            spaces.Box(0, 255, (3, 3, 3), np.uint8),
            spaces.OneOf([spaces.Discrete(4), spaces.Box(-1, 1, (2,))]),
            spaces.Discrete(5),
        ],
        seed=seed,
    )
    flat = FlatObservation(space)
    vector = flat(space.sample())
    assert vector.shape == (flat.size,)
    assert flat.low <= vector.min()
    assert vector.max() <= flat.high


def test_what_has_no_numbers_is_left_out_and_named() -> None:
    space = spaces.Dict(
        {
            "image": spaces.Box(0, 1, (2,)),
            "mission": spaces.Text(10),
            "more": spaces.Tuple([spaces.Sequence(spaces.Discrete(2)), spaces.Discrete(2)]),
        }
    )
    flat = FlatObservation(space)
    assert flat.size == 4
    assert set(flat.dropped) == {"mission", "more.0"}
    vector = flat({"image": np.array([0.5, 1.0]), "mission": "go", "more": ((1,), 1)})
    assert vector.tolist() == [0.5, 1.0, 0.0, 1.0]


def test_a_space_without_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="wrap the environment"):
        FlatObservation(spaces.Text(5))


def test_bounds_beyond_float32_become_infinite() -> None:
    flat = FlatObservation(spaces.Box(-np.finfo(np.float64).max, 1.0, (1,), np.float64))
    assert (flat.low, flat.high) == (-np.inf, 1.0)
