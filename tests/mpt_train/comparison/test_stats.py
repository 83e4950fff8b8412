from __future__ import annotations

import math

import numpy as np
import pytest

from mpt_train.comparison import stats as st

# Two-sided 95 % and 99 % critical values, as in the back of any textbook.
TABLE_95 = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 9: 2.2622, 30: 2.0423}
TABLE_99 = {1: 63.6567, 4: 4.6041, 10: 3.1693, 120: 2.6174}


@pytest.mark.parametrize(("dof", "expected"), TABLE_95.items())
def test_t_quantile_95(dof: int, expected: float) -> None:
    assert st.t_quantile(0.975, dof) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("dof", "expected"), TABLE_99.items())
def test_t_quantile_99(dof: int, expected: float) -> None:
    assert st.t_quantile(0.995, dof) == pytest.approx(expected, abs=5e-5)


def test_t_quantile_is_symmetric_and_tends_to_the_normal() -> None:
    assert st.t_quantile(0.5, 3) == 0.0
    assert st.t_quantile(0.025, 7) == -st.t_quantile(0.975, 7)
    assert st.t_quantile(0.975, 100_000) == pytest.approx(1.959964, abs=1e-4)


def test_t_cdf_closed_forms() -> None:
    # One degree of freedom is Cauchy; two have 1/2 + t / (2 sqrt(2 + t^2)).
    for t in (-3.0, -0.2, 0.0, 1.0, 12.0):
        assert st.t_cdf(t, 1) == pytest.approx(0.5 + math.atan(t) / math.pi, abs=1e-12)
        assert st.t_cdf(t, 2) == pytest.approx(0.5 + t / (2 * math.sqrt(2 + t * t)), abs=1e-12)


def test_t_cdf_inverts_the_quantile() -> None:
    for dof in (1, 2, 4, 17):
        for p in (0.6, 0.9, 0.999):
            assert st.t_cdf(st.t_quantile(p, dof), dof) == pytest.approx(p, abs=1e-12)


def test_mean_interval_by_hand() -> None:
    # Mean 3, variance 2.5, standard error sqrt(2.5 / 5) = 0.70711, t = 2.77645.
    interval = st.mean_interval([1, 2, 3, 4, 5])
    assert interval.mean == 3.0
    assert interval.half_width == pytest.approx(1.96324, abs=1e-5)
    assert interval.low == pytest.approx(1.03676, abs=1e-5)
    assert interval.n == 5


def test_one_seed_has_no_interval() -> None:
    for interval in (st.mean_interval([4.0]), st.bootstrap_interval([4.0])):
        assert interval == st.Interval(4.0, None, None, 1)
        assert interval.half_width is None


def test_no_values_is_an_error() -> None:
    for function in (st.mean_interval, st.bootstrap_interval):
        with pytest.raises(ValueError, match="at least one value"):
            function([])


def test_intervals_cover_as_often_as_they_say() -> None:
    rng = np.random.default_rng(1)
    samples = rng.normal(10.0, 3.0, (4000, 5))
    covered = 0
    for sample in samples:
        interval = st.mean_interval(sample)
        assert interval.low is not None and interval.high is not None
        covered += interval.low <= 10.0 <= interval.high
    assert covered / len(samples) == pytest.approx(0.95, abs=0.012)


def test_bootstrap_is_reproducible_and_inside_the_range() -> None:
    values = [1.0, 5.0, 2.0, 8.0]
    interval = st.bootstrap_interval(values)
    assert interval == st.bootstrap_interval(values)
    assert interval.low is not None and interval.high is not None
    assert min(values) <= interval.low < interval.mean < interval.high <= max(values)


def test_ratio_with_a_constant_denominator_is_a_scaled_interval() -> None:
    top = [10.0, 12.0, 14.0]
    ratio, plain = st.ratio_interval(top, [4.0, 4.0, 4.0]), st.mean_interval(top)
    assert plain.low is not None and plain.high is not None
    assert ratio.mean == pytest.approx(3.0)
    assert ratio.low == pytest.approx(plain.low / 4)
    assert ratio.high == pytest.approx(plain.high / 4)


def test_ratio_of_proportional_values_is_exact() -> None:
    bottom = [3.0, 4.0, 6.0]
    ratio = st.ratio_interval([2 * b for b in bottom], bottom)
    assert ratio.mean == pytest.approx(2.0)
    assert ratio.low == pytest.approx(2.0)
    assert ratio.high == pytest.approx(2.0)


def test_ratio_interval_covers() -> None:
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(3000):
        bottom = rng.normal(5.0, 1.0, 5)
        top = 2.0 * bottom + rng.normal(0.0, 1.0, 5)
        ratio = st.ratio_interval(top, bottom)
        covered += ratio.low is None or ratio.low <= 2.0 <= (ratio.high or 0.0)
    assert covered / 3000 == pytest.approx(0.95, abs=0.015)


def test_ratio_without_a_bounded_interval() -> None:
    assert st.ratio_interval([1.0, 2.0], [-1.0, 1.5]).low is None
    assert math.isnan(st.ratio_interval([1.0, 2.0], [-1.0, 1.0]).mean)
    with pytest.raises(ValueError, match="pairs"):
        st.ratio_interval([1.0], [1.0, 2.0])


def test_separate() -> None:
    high, low = st.Interval(10.0, 8.0, 12.0, 5), st.Interval(5.0, 3.0, 7.0, 5)
    assert st.separate(high, low)
    assert not st.separate(low, high)
    assert not st.separate(high, st.Interval(5.0, 1.0, 9.0, 5))
    assert not st.separate(st.mean_interval([10.0]), low)


def test_paired_difference_by_hand() -> None:
    # Differences 2, 4, 3 (seed 9 has no partner): mean 3, standard error 1 / sqrt(3), t = 5.19615.
    got = st.paired_difference("a", "b", {0: 5, 1: 8, 2: 9, 9: 100}, {0: 3, 1: 4, 2: 6})
    assert got.interval.mean == pytest.approx(3.0)
    assert got.interval.n == 3
    assert got.interval.half_width == pytest.approx(4.302653 / math.sqrt(3), abs=1e-5)
    t = 3 * math.sqrt(3)
    assert got.p_value == pytest.approx(1 - t / math.sqrt(2 + t * t), abs=1e-10)


def test_paired_difference_of_constants_and_strangers() -> None:
    assert st.paired_difference("a", "b", {0: 1, 1: 2}, {0: 0, 1: 1}).p_value == 0.0
    assert st.paired_difference("a", "b", {0: 1, 1: 2}, {0: 1, 1: 2}).p_value == 1.0
    assert st.paired_difference("a", "b", {0: 1}, {0: 0}).p_value is None
    with pytest.raises(ValueError, match="no training seed in common"):
        st.paired_difference("a", "b", {0: 1.0}, {1: 1.0})


def test_holm_by_hand() -> None:
    assert st.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert st.holm([0.9, 0.8]) == [1.0, 1.0]
    assert st.holm([]) == []


def test_adjust_keeps_the_order_and_those_without_a_p_value() -> None:
    differences = [
        st.PairedDifference("a", "b", st.mean_interval([1.0, 2.0]), 0.04),
        st.PairedDifference("a", "c", st.mean_interval([1.0]), None),
        st.PairedDifference("a", "d", st.mean_interval([1.0, 2.0]), 0.01),
    ]
    assert [d.adjusted for d in st.adjust(differences)] == [0.04, None, 0.02]
