"""Laws of intervals: textbook formulas where there are some, every possible sample on tiny pools elsewhere."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
from cases import instances
from drawn import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import refused
from scipy import stats
from tiny import Tiny

from truerank.core.arrays import Floats, Ints
from truerank.core.clusters import Clusters
from truerank.core.errors import RefusedError
from truerank.core.estimator import Estimator
from truerank.core.metric import Additive, Metric
from truerank.core.multiple import holm
from truerank.core.terms import Smooth, known_total, ratio
from truerank.estimators.full import Full, Traditional
from truerank.estimators.weighted import Hajek, HorvitzThompson, Pooled, Published
from truerank.inference.intervals import (
    Bootstrap,
    Design,
    Interval,
    Population,
    around,
    between,
    design_moments,
    residuals,
)
from truerank.inference.linearization import Spread
from truerank.metrics import catalogue
from truerank.metrics.additive import DCG, Precision, Recall
from truerank.sampling import designs

INTERVALS: list[Interval] = [Population(), Bootstrap(replicates=200), Design()]
# sums over relevant items, which Horvitz-Thompson estimates without bias
SUMS: list[Metric] = [
    metric
    for cls in catalogue().values()
    for metric in instances(cls, (1, 2))
    if isinstance(metric, Additive) and HorvitzThompson().refusal(metric) is None
]

of_population = pytest.mark.parametrize("interval", INTERVALS[:2], ids=lambda each: type(each).__name__)
every_interval = pytest.mark.parametrize("interval", INTERVALS, ids=lambda each: type(each).__name__)


def same_spread(found: Spread, wanted: Spread, *, tolerance: float) -> None:
    for name in ("value", "stderr", "low", "high", "p"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), abs=tolerance, nan_ok=True), name


def means(values: Floats, *, undefined: int = 0) -> Smooth:
    """Terms of a mean over units, with some undefined ones."""
    defined = np.arange(len(values) + undefined) < len(values)
    padded = np.concatenate([values, np.zeros(undefined)])
    return ratio(padded, defined.astype(np.float64), defined=defined)


def ratios(n: int, *, seed: int) -> Smooth:
    """A ratio of sums with dependent parts, as pooled recall has."""
    rng = np.random.default_rng(seed)
    den = rng.integers(1, 12, size=n).astype(np.float64)
    return ratio(rng.binomial(den.astype(np.int64), rng.beta(2, 5, size=n)).astype(np.float64), den)


# ---------------------------------------------------------------------------------------------------------- population


whole_numbers = arrays(np.float64, st.integers(2, 25), elements=st.integers(-20, 20).map(float))


def by_hand(effect: Floats, part: Floats, value: float, *, level: float, informative: int | None) -> Spread:
    """Statistics, section 5, written out number by number; `informative` for a difference."""
    n = len(effect)
    squares = sum(x * x for x in effect)
    stderr = math.sqrt(sum(x * x / (1 - h) for x, h in zip(effect, part, strict=True)))
    pulled = sum(h * h / (1 - h) for h in part)
    by_parts = 1 / (sum(h * h for h in part) + pulled**2 - sum(h**4 / (1 - h) ** 2 for h in part))
    kurtosis = n * sum(x**4 for x in effect) / squares**2
    by_residuals = n - 1 if kurtosis - 1 < 1e-9 else min(max(2 * n / (kurtosis - 1) - 1, 1), n - 1)
    df, k = min(by_parts, by_residuals), sum(x**3 for x in effect) / squares**1.5
    t = stats.t.ppf((1 + level) / 2, df)

    def unskewed(x: float) -> float:
        return x if abs(k) < 1e-6 else 3 / k * (np.cbrt(1 + k * (x - k / 6)) - 1)

    ratio_to_error = value / stderr
    skewed = ratio_to_error + k * ratio_to_error**2 / 3 + k * k * ratio_to_error**3 / 27 + k / 6
    p = 2 * stats.t.sf(abs(skewed), df)
    ends = unskewed(t), unskewed(-t)
    if informative is not None:
        p = max(p, 2 * stats.t.sf(abs(ratio_to_error), df), 2.0 ** (1 - informative))
        ends = max(t, ends[0]), min(-t, ends[1])
    return Spread(value, stderr, value - stderr * ends[0], value - stderr * ends[1], min(1.0, p))


@examples(60)
@given(values=whole_numbers, undefined=st.integers(0, 3), level=st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_mean_has_the_textbook_error_and_the_interval_of_small_samples(
    values: Floats, undefined: int, level: float
) -> None:
    assume(np.ptp(values) > 0)
    found = around(Population(), means(values, undefined=undefined), level=level)
    n = len(values)
    assert found.stderr == pytest.approx(float(stats.sem(values)), rel=1e-12)
    effect = (values - values.mean()) / n
    same_spread(
        found, by_hand(effect, np.full(n, 1 / n), float(values.mean()), level=level, informative=None), tolerance=1e-9
    )


def test_published_checks_of_the_interval() -> None:
    """The two worked examples of statistics, section 5."""
    found = around(Population(), ratio(np.array([1.0, 2, 0, 5]), np.array([2.0, 4, 1, 13])), level=0.95)
    assert (found.value, found.stderr, found.df) == pytest.approx((0.4, 0.03630, 1.586), abs=1e-3)
    assert (found.low, found.high) == pytest.approx((0.1975, 0.6025), abs=1e-4)
    found = around(Population(), means(np.array([0.0, 0, 0, 0, 1, 3])), level=0.95)
    assert (found.stderr, found.df, found.skewness) == pytest.approx((0.49441, 4.0069, 0.58189), abs=1e-4)
    assert (found.low, found.high, found.p) == pytest.approx((-0.2704, 5.4472, 0.1413), abs=1e-4)


@examples(60)
@given(values=whole_numbers, data=st.data(), level=st.sampled_from([0.8, 0.95]))
def test_difference_of_means_is_paired(values: Floats, data: st.DataObject, level: float) -> None:
    other = data.draw(arrays(np.float64, len(values), elements=st.integers(-20, 20).map(float)))
    difference = values - other
    assume(np.ptp(difference) > 0)
    found = between(Population(), means(values), means(other), level=level)
    n, informative = len(values), int(np.count_nonzero(difference))
    assert found.informative == informative
    assert found.stderr == pytest.approx(float(stats.sem(difference)), rel=1e-9)
    effect = (difference - difference.mean()) / n
    wanted = by_hand(effect, np.full(n, 1 / n), float(difference.mean()), level=level, informative=informative)
    same_spread(found, wanted, tolerance=1e-8)


@examples(60)
@given(st.integers(0, 2**32), st.integers(2, 30), st.integers(0, 5))
def test_ratios_of_unequal_clusters(seed: int, n: int, silent: int) -> None:
    """Clusters without a denominator do not count; the parts of the others do."""
    rng = np.random.default_rng(seed)
    den = np.append(rng.integers(1, 40, n), np.zeros(silent)).astype(np.float64)
    num = np.append(rng.binomial(den[:n].astype(int), 0.4), np.zeros(silent)).astype(np.float64)
    value = num.sum() / den.sum()
    effect = ((num - value * den) / den.sum())[:n]
    assume(np.abs(effect).max() > 1e-9 and den[:n].max() < den.sum())
    found = around(Population(), ratio(num, den), level=0.95)
    wanted = by_hand(effect, den[:n] / den.sum(), float(value), level=0.95, informative=None)
    same_spread(found, wanted, tolerance=1e-8)
    assert found.informative == n


def test_many_clusters_have_the_same_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled in one pass, or in numpy."""
    terms = ratios(100_000, seed=3)
    found = around(Population(), terms, level=0.95)
    monkeypatch.setattr("truerank.inference.moments.WORTH_COMPILING", 10**9)
    plain = around(Population(), ratios(100_000, seed=3), level=0.95)
    assert tuple(vars_of(found)) == pytest.approx(tuple(vars_of(plain)), rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("unit", [2.0**-400, 2.0**-170, 2.0**170, 2.0**400])
@of_population
def test_rewards_may_have_any_unit(interval: Interval, unit: float) -> None:
    """A log in another currency: fourth powers of what clusters add must neither overflow nor vanish."""
    sums = ratios(40, seed=2).sums
    plain, other = ratio(sums[:, 0], sums[:, 1]), ratio(sums[:, 0] * unit, sums[:, 1])
    found, wanted = around(interval, other, level=0.95), around(interval, plain, level=0.95)
    assert [getattr(found, name) / unit for name in ("value", "stderr", "low", "high")] == pytest.approx(
        [getattr(wanted, name) for name in ("value", "stderr", "low", "high")], rel=1e-9
    )
    assert (found.df, found.skewness, found.largest) == pytest.approx((wanted.df, wanted.skewness, wanted.largest))


def vars_of(spread: Spread) -> list[float]:
    return [getattr(spread, field.name) for field in fields(spread)]


def test_difference_is_over_the_units_that_both_define() -> None:
    a, b = np.array([1.0, 5.0, 2.0, 8.0, 0.0, 4.0]), np.array([0.0, 2.0, 2.0, 3.0, 7.0, 0.0])
    for_a, for_b = np.arange(6) != 4, np.arange(6) != 5
    found = between(
        Population(),
        ratio(np.where(for_a, a, 0), for_a.astype(np.float64), defined=for_a),
        ratio(np.where(for_b, b, 0), for_b.astype(np.float64), defined=for_b),
        level=0.95,
    )
    same_spread(found, between(Population(), means(a[:4]), means(b[:4]), level=0.95), tolerance=1e-12)


def test_known_totals_have_the_standard_error_of_a_product() -> None:
    # R x mean total, both estimated from the same units: the delta method on means of (num, den, total)
    rng, terms = np.random.default_rng(3), ratios(80, seed=3)
    total = rng.gamma(2.0, 1.0, size=80) + 0.1 * terms.sums[:, 1]
    given_terms = known_total(terms.sums[:, 0], terms.sums[:, 1], total)
    columns = np.stack([terms.sums[:, 0], terms.sums[:, 1], total])
    num, den, mean = columns.mean(axis=1)
    slope = np.array([mean / den, -num * mean / den**2, num / den])
    wanted = math.sqrt(float(slope @ np.cov(columns) @ slope) / 80)
    found = around(Population(), given_terms, level=0.95)
    assert found.value == pytest.approx(num / den * mean, rel=1e-12)
    # each residual over the root of 1 - h instead of all times n / (n - 1): nearly the same where parts are small
    assert found.stderr == pytest.approx(wanted, rel=0.01)


# ------------------------------------------------------------------------------------------------------------ clusters


def clustered(terms: Smooth, of_row: Ints, *, key: Ints | None = None) -> Smooth:
    """The same rows in other clusters, known by their numbers or by these."""
    known = np.arange(int(of_row.max()) + 1) if key is None else key
    return replace(terms, clusters=Clusters(of_row, known.astype(np.uint64)))


@of_population
def test_clusters_of_one_unit_are_no_clusters(interval: Interval) -> None:
    terms = ratios(40, seed=2)
    order = np.random.default_rng(0).permutation(40)
    numbered = clustered(terms, np.argsort(order), key=order)  # in any order, each known by what it was known by
    same_spread(around(interval, numbered, level=0.9), around(interval, terms, level=0.9), tolerance=1e-12)


def repeated(terms: Smooth, times: int) -> Smooth:
    """Every unit several times, in one cluster."""
    every = replace(terms, sums=np.repeat(terms.sums, times, axis=0), defined=np.repeat(terms.defined, times))
    return clustered(every, np.repeat(np.arange(len(terms.defined)), times))


@of_population
def test_copies_in_a_cluster_add_no_information(interval: Interval) -> None:
    terms = ratios(40, seed=4)
    copies = repeated(terms, 3)
    same_spread(around(interval, copies, level=0.95), around(interval, terms, level=0.95), tolerance=1e-12)
    # taken for units of their own they would seem to
    alone = clustered(copies, np.arange(120))
    assert around(interval, alone, level=0.95).stderr < 0.7 * around(interval, copies, level=0.95).stderr


# ------------------------------------------------------------------------------------------------------ every interval


@every_interval
@pytest.mark.parametrize("c", [0.5, 0.1, 1 / 3])
def test_constant_ratio_has_no_interval(interval: Interval, c: float) -> None:
    """No cluster differs from another: nothing tells how others would. With every label known, no chance is left."""
    den = np.array([1.0, 2.0, 7.0, 4.0, 3.0, 3.0])
    exact = isinstance(interval, Design)
    found = around(interval, replace(ratio(c * den, den), exact=exact), level=0.95)
    assert found.value == pytest.approx(c, rel=1e-12)
    assert (found.low, found.high) == (pytest.approx((c, c)) if exact else pytest.approx((math.nan,) * 2, nan_ok=True))


@of_population
def test_difference_turns_its_sign(interval: Interval) -> None:
    a, b = ratios(30, seed=6), ratios(30, seed=7)
    assert_turned(between(interval, a, b, level=0.9), between(interval, b, a, level=0.9))


def assert_turned(found: Spread, turned: Spread) -> None:
    assert found.stderr > 0
    same_spread(found, Spread(-turned.value, turned.stderr, -turned.high, -turned.low, turned.p), tolerance=1e-12)


@of_population
def test_what_both_models_share_cancels(interval: Interval) -> None:
    # b is a plus a constant: units differ wildly, the difference does not
    values = np.random.default_rng(8).normal(scale=50.0, size=40)
    found = between(interval, means(values), means(values + 0.25), level=0.95)
    assert found.value == pytest.approx(-0.25, abs=1e-12)
    assert math.isnan(found.stderr) or found.stderr == pytest.approx(0, abs=1e-12)  # to rounding nothing is left


HOPELESS = Tiny([[0] * 3, [0] * 4, [0] * 2])
NOTHING: list[tuple[int, ...]] = [(), (), ()]
UNDEFINED = {
    "none relevant among all": HOPELESS.terms(Pooled(), Recall(2), HOPELESS.everything(), keep_rows=True),
    "none relevant among some": HOPELESS.terms(Pooled(), Recall(2), [(0, 2), (1, 3), (0, 1)], keep_rows=True),
    "none judged": HOPELESS.terms(HorvitzThompson(), Precision(1), NOTHING, keep_rows=True),
    "none drawn at a rate": HOPELESS.terms(Pooled(), Recall(2), NOTHING, keep_rows=True, rate=0.5),
}


@every_interval
@pytest.mark.parametrize("case", UNDEFINED)
def test_undefined_value_has_an_undefined_interval(interval: Interval, case: str) -> None:
    """Labels without any relevant item, or no judged item at all, are a result and not an error."""
    terms = UNDEFINED[case]
    for found in (around(interval, terms, level=0.95), between(interval, terms, terms, level=0.95)):
        assert all(math.isnan(x) for x in (found.value, found.stderr, found.low, found.high, found.p)), found


@every_interval
def test_width_grows_with_the_level(interval: Interval) -> None:
    terms = partial_terms(HorvitzThompson(), DCG(2))
    widths = [found.high - found.low for level in (0.5, 0.9, 0.99) for found in [around(interval, terms, level=level)]]
    assert 0 < widths[0] < widths[1] < widths[2]


@of_population
def test_one_cluster_gives_no_interval_for_a_population(interval: Interval) -> None:
    terms = clustered(ratios(5, seed=9), np.zeros(5, dtype=np.int64))
    found = around(interval, terms, level=0.95)
    assert found.value == terms.value()
    assert all(math.isnan(x) for x in (found.stderr, found.low, found.high, found.p))


# ----------------------------------------------------------------------------------------------------------- bootstrap


@pytest.mark.parametrize("seed", range(3))
def test_bootstrap_is_close_to_linearisation(seed: int) -> None:
    a, b = ratios(400, seed=10 + seed), ratios(400, seed=20 + seed)
    scaled = known_total(a.sums[:, 0], a.sums[:, 1], np.random.default_rng(seed).gamma(2.0, size=400))
    resampled, linear = Bootstrap(replicates=2000, seed=seed), Population()
    for found, wanted in (
        (around(resampled, a, level=0.95), around(linear, a, level=0.95)),
        (around(resampled, scaled, level=0.95), around(linear, scaled, level=0.95)),
        (between(resampled, a, b, level=0.95), between(linear, a, b, level=0.95)),
    ):
        assert found.value == wanted.value
        assert found.stderr == pytest.approx(wanted.stderr, rel=0.1)
        assert found.high - found.low == pytest.approx(wanted.high - wanted.low, rel=0.1)


def test_bootstrap_is_fixed_by_its_seed() -> None:
    terms = ratios(40, seed=11)
    first, again, other = (around(Bootstrap(replicates=300, seed=seed), terms, level=0.95) for seed in (1, 1, 2))
    np.testing.assert_equal(dataclasses.asdict(first), dataclasses.asdict(again))  # a correction may be nan
    assert first.low != other.low


def test_bootstrap_leaves_undefined_units_out() -> None:
    values = np.random.default_rng(12).normal(size=30)
    found = around(Bootstrap(replicates=200), means(values, undefined=500), level=0.95)
    same_spread(found, around(Bootstrap(replicates=200), means(values), level=0.95), tolerance=1e-12)


# --------------------------------------------------------------------------------------------- design: every sample


def pools(sizes: Sequence[int], seed: int) -> list[Tiny]:
    """Two models on users with pools of these sizes; labels are the same, scores have ties."""
    rng = np.random.default_rng(seed)
    labels = [rng.integers(0, 2, size).tolist() for size in sizes]
    scores = [[rng.integers(0, 4, size) for size in sizes] for _ in range(2)]
    return [
        Tiny(
            labels,
            above=[(each > each[:, None]).sum(axis=1).tolist() for each in model],
            tied=[((each == each[:, None]).sum(axis=1) - 1).tolist() for each in model],
        )
        for model in scores
    ]


def over_samples(
    models: Sequence[Tiny],
    design: designs.SamplingDesign,
    spread: Callable[[list[Smooth]], tuple[float, float]],
    metric: Metric,
    *,
    rate: float | None = None,
) -> tuple[Floats, Floats, Floats]:
    """The probability of each sample, the value it gives and the variance it claims, for one model or several."""
    found = [
        (chance, *spread([each.terms(HorvitzThompson(), metric, taken, keep_rows=True, rate=rate) for each in models]))
        for taken, chance in models[0].samples([design] * len(models[0].labels))
    ]
    chance, value, variance = np.array(found).T
    assert math.fsum(chance) == pytest.approx(1, abs=1e-12)
    return chance, value, variance


def alone(terms: list[Smooth]) -> tuple[float, float]:
    """The value and the variance that the rows claim, also where they are too few for an interval."""
    first = terms[0]
    variance = 0.0 if first.exact or not first.totals()[1] else design_moments(first, residuals(first)).variance
    return first.value(), variance


def paired(terms: list[Smooth]) -> tuple[float, float]:
    first, second = terms
    empty = (first.exact and second.exact) or not first.totals()[1]
    variance = 0.0 if empty else design_moments(first, residuals(first) - residuals(second)).variance
    return first.value() - second.value(), variance


def truth(models: Sequence[Tiny], metric: Metric) -> tuple[float, float]:
    """Of the first model, and of its difference to the second."""
    first, second = (each.terms(Full(), metric, each.everything()).value() for each in models)
    return first, first - second


def mean_and_variance(chance: Floats, value: Floats) -> tuple[float, float]:
    mean = math.fsum(chance * value)
    return mean, math.fsum(chance * (value - mean) ** 2)


DRAWS: list[tuple[tuple[int, ...], designs.SamplingDesign]] = [
    ((4, 5), designs.UniformDesign(2)),
    ((4, 5), designs.UniformDesign(3)),
    ((4, 5), designs.UniformDesign(4)),  # one pool is judged completely
    ((3, 4, 3), designs.UniformDesign(2)),
    ((6, 2, 3), designs.UniformDesign(2)),
    # the outcomes include nothing judged at all and everything judged: both are samples like any other
    ((3, 4), designs.BernoulliDesign(0.4)),
    ((2, 3, 3), designs.BernoulliDesign(0.7)),
    ((4, 3), designs.BernoulliDesign(0.9)),
]


@pytest.mark.parametrize("spread", [alone, paired])
@pytest.mark.parametrize("metric", SUMS, ids=str)
@pytest.mark.parametrize(("sizes", "design"), DRAWS, ids=str)
def test_design_variance_is_unbiased_over_all_samples(
    sizes: tuple[int, ...],
    design: designs.SamplingDesign,
    metric: Metric,
    spread: Callable[[list[Smooth]], tuple[float, float]],
) -> None:
    models = pools(sizes, seed=sum(sizes))
    chance, value, claimed = over_samples(models, design, spread, metric, rate=getattr(design, "rate", None))
    mean, variance = mean_and_variance(chance, value)
    assert mean == pytest.approx(truth(models, metric)[spread is paired], abs=1e-10)
    assert math.fsum(chance * claimed) == pytest.approx(variance, abs=1e-10)


@pytest.mark.parametrize("spread", [alone, paired])
@pytest.mark.parametrize("metric", SUMS, ids=str)
@pytest.mark.parametrize("sizes", [(2, 2), (4, 4, 4), (6, 2, 3), (7, 2, 2)], ids=str)
def test_single_judged_items_are_conservative(
    sizes: tuple[int, ...], metric: Metric, spread: Callable[[list[Smooth]], tuple[float, float]]
) -> None:
    # one row tells nothing about its own variance; what is borrowed from other users must not make it too small
    chance, value, claimed = over_samples(pools(sizes, seed=1), designs.UniformDesign(1), spread, metric)
    assert math.fsum(chance * claimed) >= mean_and_variance(chance, value)[1] - 1e-10


def test_single_judged_items_are_compared_with_users_of_like_activity() -> None:
    # twelve users with pools of 2 and twelve with pools of 6: what an active user earns says nothing about the others
    sizes = (2,) * 12 + (6,) * 12
    terms = pools(sizes, seed=3)[0].terms(HorvitzThompson(), DCG(2), [(0,)] * 24, keep_rows=True)
    rows = terms.rows
    assert rows is not None
    expanded = np.array(sizes) * np.bincount(rows.unit, weights=rows.num, minlength=24)
    by_class = sum(12 * float(np.var(part, ddof=1)) for part in (expanded[:12], expanded[12:]))
    together = 24 * float(np.var(expanded, ddof=1))
    assert by_class < 0.99 * together
    assert alone([terms])[1] == pytest.approx(by_class / 24**2, rel=1e-12)
    # three users more, of a third size, are too few for a class of their own
    more = pools((*sizes, 9, 9, 9), seed=3)[0]
    assert alone([more.terms(HorvitzThompson(), DCG(2), [(0,)] * 27, keep_rows=True)])[1] > 0


def test_ignoring_the_pairing_is_wrong() -> None:
    # negative control: two per-model variances do not give the variance of the difference
    def unpaired(terms: list[Smooth]) -> tuple[float, float]:
        first, second = (alone([each]) for each in terms)
        return first[0] - second[0], first[1] + second[1]

    chance, value, claimed = over_samples(pools((4, 5), seed=1), designs.UniformDesign(2), unpaired, DCG(2))
    assert abs(math.fsum(chance * claimed) / mean_and_variance(chance, value)[1] - 1) > 0.05


def test_a_wrong_variance_is_caught() -> None:
    # negative control: Bernoulli's formula on samples of fixed size
    def wrong(terms: list[Smooth]) -> tuple[float, float]:
        rows = terms[0].rows
        assert rows is not None
        return alone([replace(terms[0], rows=replace(rows, rate=0.5))])

    chance, value, claimed = over_samples(pools((4, 5), seed=1), designs.UniformDesign(2), wrong, DCG(2))
    assert math.fsum(chance * claimed) != pytest.approx(mean_and_variance(chance, value)[1], rel=0.05)


# -------------------------------------------------------------------------------------------------- design: other laws


LARGE = pools((30,) * 60, seed=3)
SMALL = pools((3, 4, 2), seed=0)


def partial_terms(estimator: Estimator, metric: Metric, *, model: int = 0, seed: int = 1) -> Smooth:
    """Terms of 60 users with pools of 30, of which 12 were judged."""
    rng = np.random.default_rng(seed)
    judged = [sorted(rng.choice(30, 12, replace=False).tolist()) for _ in range(60)]
    return LARGE[model].terms(estimator, metric, judged, keep_rows=True)


PARTIAL: list[tuple[Estimator, Metric]] = [
    (Pooled(), Recall(5)),
    (HorvitzThompson(), DCG(5)),
    (Hajek(), DCG(5)),
    (Hajek(), Precision(3)),
]


@pytest.mark.parametrize(("estimator", "metric"), PARTIAL, ids=str)
def test_design_interval_is_zero_where_everything_is_judged(estimator: Estimator, metric: Metric) -> None:
    a, b = (each.terms(estimator, metric, each.everything(), keep_rows=True) for each in SMALL)
    for found, value in (
        (around(Design(), a, level=0.95), a.value()),
        (between(Design(), a, b, level=0.95), a.value() - b.value()),
    ):
        assert (found.value, found.stderr, found.low, found.high) == (value, 0.0, value, value)
    assert math.isnan(around(Design(), a, level=0.95).p)
    assert between(Design(), a, b, level=0.95).p == float(a.value() == b.value())  # without sampling error


@pytest.mark.parametrize(("estimator", "metric"), PARTIAL, ids=str)
def test_design_difference_turns_its_sign_and_vanishes_with_itself(estimator: Estimator, metric: Metric) -> None:
    a, b = (partial_terms(estimator, metric, model=model) for model in (0, 1))
    assert between(Design(), a, a, level=0.95).value == 0
    assert math.isnan(between(Design(), a, a, level=0.95).stderr)
    assert_turned(between(Design(), a, b, level=0.9), between(Design(), b, a, level=0.9))


@pytest.mark.parametrize(("estimator", "metric"), PARTIAL, ids=str)
def test_design_variance_of_ratios_matches_redrawn_samples(estimator: Estimator, metric: Metric) -> None:
    # ratios are linearised, so only close: 300 redraws know a variance to about 8 %
    found = []
    for seed in range(300):
        a, b = (partial_terms(estimator, metric, model=model, seed=seed) for model in (0, 1))
        one, two = around(Design(), a, level=0.95), between(Design(), a, b, level=0.95)
        found.append((one.value, one.stderr**2, two.value, two.stderr**2))
    value, claimed, difference, claimed_difference = np.array(found).T
    assert claimed.mean() == pytest.approx(value.var(ddof=1), rel=0.25)
    assert claimed_difference.mean() == pytest.approx(difference.var(ddof=1), rel=0.25)


@pytest.mark.parametrize("estimator", [Published(), Traditional()], ids=repr)
def test_design_interval_is_refused_where_none_is_known(estimator: Estimator) -> None:
    assert not estimator.info.design
    terms = partial_terms(estimator, Recall(5))
    with refused(r"interval=Population\(\)", RefusedError):
        around(Design(), terms, level=0.95)


def test_one_user_with_a_single_judged_item_is_refused_but_for_a_pool_of_one() -> None:
    judged = SMALL[0].terms(HorvitzThompson(), DCG(2), [(0,), (0, 1), (0, 1)], keep_rows=True)
    with refused("single labelled item", RefusedError):
        around(Design(), judged, level=0.95)
    known = Tiny([[1], [1, 0, 1, 0]]).terms(HorvitzThompson(), DCG(2), [(0,), (0, 2)], keep_rows=True)
    assert math.isfinite(around(Design(), known, level=0.95).stderr)


# ---------------------------------------------------------------------------------------------------------------- Holm


def rejected_step_by_step(p: Floats, alpha: float) -> set[int]:
    """As Holm wrote it: the smallest p against alpha / m, the next against alpha / (m - 1), until one fails."""
    gone: set[int] = set()
    for step, at in enumerate(np.argsort(p, kind="stable")):
        if p[at] > alpha / (len(p) - step):
            break
        gone.add(int(at))
    return gone


probabilities = arrays(np.float64, st.integers(1, 8), elements=st.integers(0, 64).map(lambda x: x / 64))


@examples(100)
@given(p=probabilities, data=st.data())
def test_holm(p: Floats, data: st.DataObject) -> None:
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(len(p) * p, 1)).all()  # never worse than Bonferroni
    assert adjusted.min() == min(1.0, len(p) * p.min())
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()
    assert all(adjusted[i] == adjusted[j] for i in range(len(p)) for j in range(len(p)) if p[i] == p[j])
    order: Ints = np.array(data.draw(st.permutations(range(len(p)))))
    np.testing.assert_array_equal(holm(p[order]), adjusted[order])
    # powers of two: the divisions of the procedure and the products of the adjustment are both exact enough
    for alpha in (0.03, 0.11, 0.3):
        assert rejected_step_by_step(p, alpha) == set(np.flatnonzero(adjusted <= alpha).tolist())
    with_nan = holm(np.append(p, np.nan))
    np.testing.assert_array_equal(with_nan, np.append(adjusted, np.nan))
