"""Fits to scroll depths: closed forms, derivatives, censoring, groups, features, goodness of fit, refusals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from depths import cut, draw_depths, fitted
from refusals import refused

from truerank.core.arrays import Floats
from truerank.core.errors import RefusedError
from truerank.exposure.positions.depths import FAMILIES, Depths, fit_depths, fit_groups
from truerank.exposure.positions.position_models import Exponential, FitRequest, Place, Positions, Table

LAWS = ("exp", "yule", "log")


def sample(family: str, value: float, n: int, *, end: int, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    scale = FAMILIES[family].scale
    u = float(np.log(value / (1 - value)) if scale == "logit" else np.log(value))
    depth, ended = cut(draw_depths(family, np.full(n, u), rng), end)
    return depth, ended.astype(np.float64)


@pytest.mark.parametrize("family", LAWS)
def test_likelihoods_are_those_of_the_position_model(family: str) -> None:
    """P(D >= d) is P(V | d), P(D = d) is P(V | d) - P(V | d + 1); derivatives agree with differences."""
    law, depth, step = FAMILIES[family], np.array([1.0, 2.0, 7.0, 300.0]), 1e-5
    for u in (-0.7, 0.4, 2.0):
        at = np.array([u])
        view = law.model(u, cutoff=None).view(np.concatenate([depth, depth + 1]))
        np.testing.assert_allclose(np.exp(law.reached(at, depth)[0]), view[:4], rtol=1e-10)
        np.testing.assert_allclose(np.exp(law.stopped(at, depth)[0]), view[:4] - view[4:], rtol=1e-8, atol=1e-300)
        for function in (law.reached, law.stopped):
            _, first, second = function(at, depth)
            above, below = function(at + step, depth), function(at - step, depth)
            np.testing.assert_allclose(first, (above[0] - below[0]) / (2 * step), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(second, (above[1] - below[1]) / (2 * step), rtol=1e-5, atol=1e-6)


def test_the_geometric_fit_has_its_closed_form() -> None:
    """γ̂ = Σ(d - 1) / (Σ(d - 1) + uncensored), standard error √(γ(1 - γ) / (Σ(d - 1) + uncensored))."""
    depth, ended = sample("exp", 0.8, 300, end=6)
    fit = fit_depths("exp", Depths.from_sessions(depth, censored=ended))
    on, stops = (depth - 1).sum(), (1 - ended).sum()
    gamma = on / (on + stops)
    assert fit.parameter.value == pytest.approx(gamma, abs=1e-14)
    assert fit.parameter.stderr == pytest.approx(np.sqrt(gamma * (1 - gamma) / (on + stops)), rel=1e-12)
    assert fit.log_likelihood == pytest.approx(on * np.log(gamma) + stops * np.log(1 - gamma))
    assert (fit.n, fit.n_censored) == (300, int(ended.sum()))


@pytest.mark.parametrize("family", LAWS)
def test_borders_are_refused(family: str) -> None:
    with refused("no session goes beyond rank 1", RefusedError):
        fit_depths(family, Depths.from_sessions([1, 1, 1]))
    with refused("end of its feed", RefusedError):
        fit_depths(family, Depths.from_sessions([4, 4], censored=[True, True]))


def test_wrong_depths_are_refused() -> None:
    for wrong in ([0, 1], [1.5], [np.nan], []):
        with refused("scroll depth"):
            Depths.from_sessions(wrong)
    with refused("as many of each"):
        Depths.from_sessions([1, 2], censored=[True])
    with refused("cannot be fitted"):
        fit_depths("cauchy", Depths.from_sessions([1, 2]))


def test_goodness_of_fit_tells_a_wrong_family() -> None:
    depth, ended = sample("yule", 1.0, 3000, end=50)
    data = Depths.from_sessions(depth, censored=ended)
    right, wrong = fit_depths("yule", data), fit_depths("exp", data)
    assert right.goodness.p > 0.01
    assert wrong.goodness.p < 1e-10
    for fit in (right, wrong):
        buckets = fit.goodness.buckets
        assert sum(each.observed for each in buckets) == (1 - ended).sum()
        assert all(a.last + 1 == b.first for a, b in pairwise(buckets))
        assert all(each.expected >= 5 for each in buckets)
    # stops expected by a maximum-likelihood fit add up to those observed for γ (its score equation)
    assert sum(each.expected for each in wrong.goodness.buckets) == pytest.approx((1 - ended).sum())


def test_a_table_is_the_share_that_reaches_each_rank() -> None:
    fit = fit_depths("table", Depths.from_sessions([1, 2, 2, 4]))
    assert isinstance(fit.model, Table)
    np.testing.assert_allclose(fit.model.probability, [1.0, 0.75, 0.25, 0.25])
    assert fit.parameters[0].stderr == pytest.approx(np.sqrt(0.75 * 0.25 / 4))  # Greenwood's is the binomial one here
    # with censoring, Kaplan-Meier: 1 of 4 stops at 1; of the three left one ends at 2, one of two stops at 2
    fit = fit_depths("table", Depths.from_sessions([1, 2, 2, 4], censored=[False, False, True, False]))
    np.testing.assert_allclose(fit.model.view(np.arange(1.0, 4.0)), [1.0, 0.75, 0.375])


@pytest.mark.parametrize("family", LAWS)
def test_groups_are_drawn_towards_everyone(family: str) -> None:
    rng = np.random.default_rng(5)
    centre = {"exp": 1.4, "yule": 0.3, "log": 3.0}[family]
    u = centre + np.repeat([-0.8, 0.8], [20, 20])
    size = rng.integers(30, 60, 40)
    group = np.repeat(np.arange(40), size)
    depth, ended = cut(draw_depths(family, u[group], rng), 30)
    parts = {f"{g:02}": Depths.from_sessions(depth[group == g], censored=ended[group == g]) for g in range(40)}
    whole, fits, spread = fit_groups(family, parts)
    values, everyone = np.array([fit.parameter.value for fit in fits.values()]), whole.parameter.value
    assert 0.3 < spread < 1.6
    # each lies between its own maximum and everyone's, and the groups stay apart
    own = np.array([fit_depths(family, part).parameter.value for part in parts.values()])
    assert ((values - everyone) * (own - everyone) >= 0).all()
    assert (np.abs(np.log(values / everyone)) <= np.abs(np.log(own / everyone)) + 1e-9).all()
    assert abs(np.log(values[:20]).mean() - np.log(values[20:]).mean()) > 0.1


def test_requests_are_fitted_where_they_hold() -> None:
    feed = Positions(((Place("a"), FitRequest("exp")), (Place("b"), Exponential(0.3))))
    models, fits = fitted(feed, depth=[1, 2, 3, 9], surface=np.array(["a", "a", "a", "b"]))
    assert models == Positions(((Place("a"), Exponential(0.5)), (Place("b"), Exponential(0.3))))
    assert list(fits) == ["a"]
    models, fits = fitted(FitRequest("exp", per_group=True), depth=[1, 2, 9, 9], group=np.array(list("xxyy")))
    assert set(fits) == {"*", "*/x", "*/y"}
    light, heavy = models.view_by(models.at(2, group=np.array(["x", "y"])), np.full(2, 2.0))
    assert light < heavy
    with refused("no session is there"):
        fitted(
            Positions(((Place("a"), FitRequest("exp")), (Place(), FitRequest("exp")))),
            depth=[1, 2],
            surface=np.array(["b", "b"]),
        )
    with refused("all displayed items"):
        fitted(FitRequest("clicks"), depth=[1, 2])


def test_groups_that_cannot_have_a_model_of_their_own_are_refused() -> None:
    grouped, names = FitRequest("exp", per_group=True), np.array(list("xxyy"))
    assert str(grouped) == "fit:exp(per_group=true)"
    with refused("no column group"):
        fitted(grouped, depth=[1, 2, 9, 9])
    with refused("groups cannot share this"):
        fitted(FitRequest("clicks", per_group=True), depth=[1, 2, 9, 9], group=names)
    with refused("which is one group"):
        fitted(Positions(((Place(None, "x"), grouped), (Place(), Exponential(0.5)))), depth=[1, 2, 9, 9], group=names)
    many = np.arange(300).astype(str)
    with refused("more than 200 groups"):
        fitted(grouped, depth=np.ones(300), group=many)
    # a group that has a model of its own keeps it
    models, _ = fitted(
        Positions(((Place(None, "x"), Exponential(0.1)), (Place(), grouped))), depth=[1, 2, 9, 9], group=names
    )
    assert models.rules[0] == (Place(None, "x"), Exponential(0.1))
