"""The metrics of an episode: hand-computed cases, and what must hold of all."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mpt_envs.navigation.rules.metrics import METRIC_NAMES, dtw, episode_metrics, ndtw

# Three metres ahead, then one to the side; a turn in place between.
PATH = [[0, 0, 0], [0, 0, -3], [0, 0, -3], [1, 0, -3]]
REFERENCE = [[0, 0, 0], [0, 0, -2], [0, 0, -4]]


def test_hand_computed_success() -> None:
    metrics = episode_metrics(PATH, [5.0, 2.0, 2.0, 1.0], True, 3.0, REFERENCE, 3.0)
    assert tuple(metrics) == METRIC_NAMES
    assert metrics["path_length"] == pytest.approx(4.0)
    assert metrics["distance_to_goal"] == 1.0
    assert metrics["oracle_success"] == 1.0
    assert metrics["success"] == 1.0
    assert metrics["spl"] == pytest.approx(3.0 / 4.0)
    # Matches: 0-0 at 0, (0, 0, -3)-(0, 0, -2) at 1, (1, 0, -3)-(0, 0, -4) at sqrt(2).
    assert metrics["ndtw"] == pytest.approx(math.exp(-(1 + math.sqrt(2)) / (3 * 3.0)))
    assert metrics["sdtw"] == pytest.approx(metrics["ndtw"])


@pytest.mark.parametrize(
    ("distances", "stopped", "success", "oracle"),
    [
        ([5.0, 2.0, 2.0, 1.0], False, 0.0, 1.0),  # ran out of turns near the goal
        ([5.0, 2.0, 2.0, 4.0], True, 0.0, 1.0),  # passed the goal and stopped beyond
        ([2.5, 4.0, 4.0, 5.0], True, 0.0, 1.0),  # only the start was near
        ([5.0, 4.0, 4.0, 3.0], True, 0.0, 0.0),  # exactly at the radius: not less than it
        ([5.0, 4.0, 4.0, np.nextafter(3.0, 0)], True, 1.0, 1.0),
        ([math.inf, 4.0, 4.0, math.inf], True, 0.0, 0.0),  # off the navigable space
    ],
)
def test_success_and_oracle(
    distances: list[float], stopped: bool, success: float, oracle: float
) -> None:
    metrics = episode_metrics(PATH, distances, stopped, 5.0, REFERENCE)
    assert metrics["success"] == success
    assert metrics["oracle_success"] == oracle
    assert metrics["spl"] == success  # the path (4 m) is shorter than the geodesic (5 m)
    assert metrics["sdtw"] == success * metrics["ndtw"]


def test_turning_in_place_costs_no_ndtw_but_coming_back_does() -> None:
    turned = [PATH[0]] * 5 + [PATH[1]] * 3 + PATH[3:]
    assert ndtw(turned, REFERENCE) == ndtw(PATH, REFERENCE)
    back = [*PATH, PATH[0], PATH[3]]
    assert ndtw(back, REFERENCE) < ndtw(PATH, REFERENCE)


def test_starting_at_the_goal() -> None:
    metrics = episode_metrics([[1, 2, 3]], [0.0], True, 0.0, [[1, 2, 3]])
    assert metrics == dict(zip(METRIC_NAMES, (0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0), strict=True))
    assert episode_metrics([[0, 0, 0]], [0.0], False, 0.0, [[0, 0, 0]])["spl"] == 0.0


def test_properties_of_random_episodes() -> None:
    rng = np.random.default_rng(0)
    successes = 0
    for _ in range(200):
        steps = int(rng.integers(1, 40))
        path = np.cumsum(rng.normal(scale=0.5, size=(steps, 3)), axis=0)
        reference = np.cumsum(rng.normal(scale=0.5, size=(int(rng.integers(1, 30)), 3)), axis=0)
        goal = reference[-1]
        distances = np.linalg.norm(path - goal, axis=1)
        stopped = bool(rng.random() < 0.7)
        radius = float(rng.uniform(0.5, 4))
        m = episode_metrics(path, distances, stopped, float(distances[0]), reference, radius)
        successes += int(m["success"])
        assert all(math.isfinite(value) and value >= 0 for value in m.values())
        assert m["spl"] <= m["success"] <= m["oracle_success"] <= 1
        assert m["sdtw"] <= min(m["success"], m["ndtw"])
        assert 0 < m["ndtw"] <= 1
        assert m["path_length"] >= np.linalg.norm(path[-1] - path[0]) - 1e-9
        assert m["ndtw"] == math.exp(-dtw(path, reference) / (len(reference) * radius))
        # The ground truth itself is perfect; a wider radius is milder.
        assert ndtw(reference, reference, radius) == 1.0
        assert ndtw(path, reference, 2 * radius) == pytest.approx(math.sqrt(m["ndtw"]))
        # Moving everything moves no metric.
        shift = rng.normal(size=3)
        moved = episode_metrics(
            path + shift, distances, stopped, float(distances[0]), reference + shift, radius
        )
        assert moved == pytest.approx(m, abs=1e-9)
    assert 20 < successes < 180


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="one entry per position"):
        episode_metrics(PATH, [1.0], True, 1.0, REFERENCE)
    with pytest.raises(ValueError, match="shortest must be a distance"):
        episode_metrics(PATH, [1.0] * 4, True, math.inf, REFERENCE)
    with pytest.raises(ValueError, match="positions must be"):
        episode_metrics(np.zeros((0, 3)), [], True, 1.0, REFERENCE)
