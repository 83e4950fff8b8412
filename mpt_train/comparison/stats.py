"""Statistics over training seeds: means with intervals, paired differences, ratios.

The unit of replication is the *training seed*: whatever was measured inside one training run
(worlds, repeats) is averaged first, and only the averages of the runs are compared. All raw values
stay with the results, so that any other statistic can be computed from them.

Intervals are Student's t (two-sided, 95 % by default); a percentile bootstrap is there for a look
without the assumption of normal values, but with a handful of seeds it is too narrow. Ratios of two
means over the same seeds take Fieller's interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean and its confidence interval.

    Attributes:
        mean: the point estimate.
        low, high: the ends; None where there is no interval (fewer than two values).
        n: number of training seeds.
    """

    mean: float
    low: float | None
    high: float | None
    n: int

    @property
    def half_width(self) -> float | None:
        """Half the length of the interval; None where there is none."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class PairedDifference:
    """The mean difference between two methods over the seeds that both have.

    Attributes:
        first, second: the methods; the difference is first minus second.
        interval: of the mean difference.
        p_value: two-sided, of the paired t-test; None with fewer than two seeds.
        adjusted: ``p_value`` after Holm's correction over all differences of one table.
    """

    first: str
    second: str
    interval: Interval
    p_value: float | None
    adjusted: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


# -- Student's t -----------------------------------------------------------------------------


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function (modified Lentz; DLMF 8.17.22)."""
    tiny = 1e-300
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    result = d
    for m in range(1, 500):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + numerator / c
            c = c if abs(c) > tiny else tiny
            result *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return result


def regularized_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b), the regularized incomplete beta function, for positive a, b and x in [0, 1]."""
    if not 0.0 <= x <= 1.0:
        raise ValueError(f"x must be in [0, 1], got {x}")
    if x in (0.0, 1.0):
        return x
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    # The fraction converges fast on one side of the mean; the symmetry gives the other.
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, 1.0 - x) / b


def t_cdf(t: float, dof: int) -> float:
    """P(T <= t) of Student's t with ``dof`` degrees of freedom."""
    if dof < 1:
        raise ValueError(f"degrees of freedom must be at least 1, got {dof}")
    tail = 0.5 * regularized_beta(dof / 2.0, 0.5, dof / (dof + t * t))
    return 1.0 - tail if t > 0 else tail


def t_quantile(p: float, dof: int) -> float:
    """The t with P(T <= t) = p, by bisection to the last digits."""
    if not 0.0 < p < 1.0:
        raise ValueError(f"p must be between 0 and 1, got {p}")
    if p == 0.5:
        return 0.0
    if p < 0.5:
        return -t_quantile(1.0 - p, dof)
    low, high = 0.0, 1.0
    while t_cdf(high, dof) < p:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if t_cdf(middle, dof) < p:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _critical(n: int, confidence: float) -> float:
    return t_quantile(0.5 + confidence / 2.0, n - 1)


# -- intervals -------------------------------------------------------------------------------


def mean_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Mean over training seeds with its t-interval.

    Args:
        values: one number per training seed; not empty.
    """
    if not len(values):
        raise ValueError("an interval needs at least one value")
    array = np.asarray(values, np.float64)
    mean = float(array.mean())
    n = len(array)
    if n < 2:
        return Interval(mean, None, None, n)
    half = _critical(n, confidence) * float(array.std(ddof=1)) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, n)


def bootstrap_interval(
    values: Sequence[float],
    confidence: float = CONFIDENCE,
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """Mean over training seeds with its percentile bootstrap interval (narrow for few seeds)."""
    if not len(values):
        raise ValueError("an interval needs at least one value")
    array = np.asarray(values, np.float64)
    mean = float(array.mean())
    n = len(array)
    if n < 2:
        return Interval(mean, None, None, n)
    draws = np.random.default_rng(seed).integers(0, n, (resamples, n))
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(array[draws].mean(axis=1), [tail, 1.0 - tail])
    return Interval(mean, float(low), float(high), n)


def ratio_interval(
    numerator: Sequence[float], denominator: Sequence[float], confidence: float = CONFIDENCE
) -> Interval:
    """Ratio of two means over the same seeds, with Fieller's interval.

    The ends are None where the denominator's mean is not clearly different from 0: then no bounded
    interval exists. A denominator whose mean is 0 has no ratio: nan.
    """
    if len(numerator) != len(denominator):
        raise ValueError(
            f"a ratio over seeds needs pairs, got {len(numerator)} and {len(denominator)} values"
        )
    if not len(numerator):
        raise ValueError("an interval needs at least one value")
    top = np.asarray(numerator, np.float64)
    bottom = np.asarray(denominator, np.float64)
    n = len(top)
    a, b = float(top.mean()), float(bottom.mean())
    if b == 0.0:
        return Interval(math.nan, None, None, n)
    if n < 2:
        return Interval(a / b, None, None, n)
    covariance = np.cov(top, bottom) / n
    square = _critical(n, confidence) ** 2
    # The ends are the roots r of (a - r b)^2 = t^2 Var(a - r b).
    qa = b * b - square * float(covariance[1, 1])
    qb = a * b - square * float(covariance[0, 1])
    qc = a * a - square * float(covariance[0, 0])
    if qa <= 0.0:
        return Interval(a / b, None, None, n)
    root = math.sqrt(max(qb * qb - qa * qc, 0.0))
    return Interval(a / b, (qb - root) / qa, (qb + root) / qa, n)


# -- comparisons -----------------------------------------------------------------------------


def separate(upper: Interval, lower: Interval) -> bool:
    """Whether ``upper`` lies above ``lower`` and their intervals do not touch.

    Stricter than a test of the difference. False where either has no interval.
    """
    if upper.low is None or lower.high is None:
        return False
    return upper.low > lower.high


def paired_difference(
    first: str,
    second: str,
    first_values: Mapping[int, float],
    second_values: Mapping[int, float],
    confidence: float = CONFIDENCE,
) -> PairedDifference:
    """Difference between two methods over the training seeds that both have.

    Args:
        first, second: their names.
        first_values, second_values: value by training seed.
    """
    seeds = sorted(set(first_values) & set(second_values))
    if not seeds:
        raise ValueError(f"{first} and {second} have no training seed in common")
    differences = [first_values[s] - second_values[s] for s in seeds]
    interval = mean_interval(differences, confidence)
    p_value = None
    n = len(differences)
    if n > 1:
        deviation = float(np.std(differences, ddof=1))
        if deviation == 0.0:
            p_value = 1.0 if interval.mean == 0.0 else 0.0
        else:
            t = abs(interval.mean) / (deviation / math.sqrt(n))
            p_value = 2.0 * t_cdf(-t, n - 1)
    return PairedDifference(first, second, interval, p_value)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: adjusted p-values in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(order):
        running = max(running, (len(p_values) - rank) * p_values[index])
        adjusted[index] = min(running, 1.0)
    return adjusted


def adjust(differences: Sequence[PairedDifference]) -> list[PairedDifference]:
    """The differences with Holm-corrected p-values; those without a p-value stay as they are."""
    known = [i for i, d in enumerate(differences) if d.p_value is not None]
    corrected = holm([float(differences[i].p_value or 0.0) for i in known])
    adjusted = dict(zip(known, corrected, strict=True))
    return [
        PairedDifference(d.first, d.second, d.interval, d.p_value, adjusted.get(i))
        for i, d in enumerate(differences)
    ]
