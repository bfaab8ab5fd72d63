"""Laws of propensity models: in (0, 1], refitted under weights, recovering what made the log; bad input explained."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.arrays import Floats, Ints
from truerank.core.errors import InputError
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.options import Drawn
from truerank.core.ranking import Candidates
from truerank.data.features import Features, read_features
from truerank.exposure.kinds import BiasedExposure
from truerank.exposure.propensities import Fitted, PropensityModel, logistic, parse_propensity
from truerank.exposure.propensities.calibration import calibration
from truerank.exposure.propensities.given import GivenPropensity
from truerank.exposure.propensities.logistic import Logistic
from truerank.exposure.propensities.naive_bayes import NaiveBayes
from truerank.exposure.propensities.power import PopularityPower
from truerank.report.calibration import calibration_plot, calibration_text

N_USERS, N_ITEMS = 200, 40
MODELS: list[PropensityModel] = [
    GivenPropensity(), PopularityPower(), PopularityPower(1.0, 0.05), NaiveBayes(), NaiveBayes(drawn=Drawn.UNSEEN),
    NaiveBayes("rating"), Logistic(), Logistic(10.0),
]  # fmt: skip
COUNTED = [each for each in MODELS if not isinstance(each, Logistic)]


class World:
    """Every pair has a label, features and a true propensity; the log and a random slice are drawn from it."""

    def __init__(self, seed: int = 1, *, by_label: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.users, self.items = Ids.of(range(N_USERS)), Ids.of(range(N_ITEMS))
        self.label = (rng.random((N_USERS, N_ITEMS)) < np.linspace(0.1, 0.5, N_ITEMS)).astype(np.float64)
        x_user, x_item = rng.normal(size=(N_USERS, 1)), rng.integers(0, 2, (N_ITEMS, 1)).astype(np.float64)
        logit = -2 + 0.8 * x_user + 1.2 * x_item.T
        self.truth = 0.05 + 0.25 * self.label if by_label else 1 / (1 + np.exp(-logit))
        self.user_features = Features(self.users, x_user, ("age",))
        self.item_features = Features(self.items, x_item, ("new",))
        self.log = self.pick(*np.nonzero(rng.random((N_USERS, N_ITEMS)) < self.truth))
        self.random = self.pick(*np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.2))

    def pick(self, user: Ints, item: Ints) -> Log:
        label = self.label[user, item]
        rewards = {"label": label, "rating": 1 + label + (user + item) % 2}
        return Log(self.users, self.items, user, item, rewards, propensity=self.truth[user, item])

    def fit(self, model: PropensityModel, **others: Any) -> Fitted:
        given: dict[str, Any] = {"random": self.random, "user_features": self.user_features}
        return model.fit(self.log, **(given | {"item_features": self.item_features} | others))


WORLD = World()


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_propensities_are_probabilities_of_rows(model: PropensityModel) -> None:
    found = WORLD.fit(model)
    assert found.value.shape == (len(WORLD.log),)
    assert ((found.value > 0) & (found.value <= 1)).all()
    assert found.under(np.ones(N_USERS)) == pytest.approx(found.value, abs=1e-12)
    assert found.at(WORLD.log) == pytest.approx(found.value, abs=1e-12)
    assert found.description
    weight = np.random.default_rng(0).multinomial(N_USERS, np.full(N_USERS, 1 / N_USERS)).astype(np.float64)
    assert np.array_equal(found.under(weight), found.value) is not found.fitted
    assert ((found.under(weight) > 0) & (found.under(weight) <= 1)).all()


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_text_forms_parse_back(model: PropensityModel) -> None:
    assert parse_propensity(str(model)) == model


@pytest.mark.parametrize("model", COUNTED, ids=str)
def test_a_weight_of_two_is_a_user_twice(model: PropensityModel) -> None:
    """Refitting under weights equals fitting to a log in which users occur that often; weight 0 is absence."""
    weight = (np.arange(N_USERS) % 3).astype(np.float64)
    times = np.repeat(np.arange(N_USERS), weight.astype(np.int64))

    def copied(log: Log) -> Log:
        rows = [np.flatnonzero(log.user == user) for user in times]
        user = np.concatenate([np.full(len(each), at) for at, each in enumerate(rows)])
        return replace(log.select(np.concatenate(rows)), users=Ids.of(range(len(times))), user=user)

    log = copied(WORLD.log)
    refitted = model.fit(log, random=copied(WORLD.random))
    expected = WORLD.fit(model).under(weight)
    cell = {(u, i): p for u, i, p in zip(WORLD.log.user, WORLD.log.item, expected, strict=True)}
    found = [cell[times[u], i] for u, i in zip(log.user, log.item, strict=True)]
    assert refitted.value == pytest.approx(np.array(found), abs=1e-12)


def test_one_newton_step_is_the_refit_to_first_order() -> None:
    """The error of `under` against a full refit shrinks with the square of the change of weights."""
    direction = np.sin(np.arange(N_USERS))
    errors = []
    for size in (0.2, 0.1):
        weight = 1 + size * direction
        exact = _refit(weight)
        errors.append(float(np.abs(WORLD.fit(Logistic()).under(weight) - exact).max()))
    moved = float(np.abs(_refit(1 + 0.2 * direction) - WORLD.fit(Logistic()).value).max())
    assert errors[0] < 0.1 * moved
    assert errors[1] == pytest.approx(errors[0] / 4, rel=0.3)


def _refit(weight: Floats) -> Floats:
    from sklearn.linear_model import LogisticRegression

    user, item = np.divmod(np.arange(N_USERS * N_ITEMS), N_ITEMS)
    seen = np.zeros(N_USERS * N_ITEMS)
    seen[WORLD.log.user * N_ITEMS + WORLD.log.item] = 1
    x_user, x_item = WORLD.user_features.value, WORLD.item_features.value
    x_user, x_item = (x_user - x_user.mean()) / x_user.std(), (x_item - x_item.mean()) / x_item.std()
    x = np.column_stack([x_user[user], x_item[item]])
    model = LogisticRegression(tol=1e-10, max_iter=1000).fit(x, seen, sample_weight=weight[user])
    found: Floats = model.predict_proba(x)[:, 1]
    rows: Floats = found[WORLD.log.user * N_ITEMS + WORLD.log.item]
    return rows


def test_logistic_recovers_what_made_the_log() -> None:
    found = WORLD.fit(Logistic())
    everything = WORLD.pick(*(each.ravel() for each in np.indices((N_USERS, N_ITEMS))))
    assert np.abs(found.at(everything) - WORLD.truth.ravel()).mean() < 0.01


def test_a_sample_of_unobserved_pairs_is_weighted(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = WORLD.fit(Logistic()).value
    monkeypatch.setattr(logistic, "MOST_CELLS", 1200)
    part = WORLD.fit(Logistic())
    assert "weighted" in part.description
    assert np.abs(part.value - whole).mean() < 0.03
    assert part.value.mean() == pytest.approx(whole.mean(), rel=0.1)
    again, other = WORLD.fit(Logistic()), WORLD.fit(Logistic(), seed=1)
    assert np.array_equal(again.value, part.value)
    assert not np.array_equal(other.value, part.value)


def test_pairs_outside_the_candidates_are_not_unobserved() -> None:
    """Items 0 to 19 were no candidates for anyone: rates are those among the others."""
    log = WORLD.log.select(WORLD.log.item >= 20)
    gone = Pairs.of(np.repeat(np.arange(N_USERS), 20), np.tile(np.arange(20), N_USERS), n_units=N_USERS)
    candidates = Candidates(N_USERS, N_ITEMS, exclude=gone)
    fitted = Logistic(100.0).fit(log, item_features=WORLD.item_features, candidates=candidates)
    for kind in (0.0, 1.0):
        of_kind = WORLD.item_features.value[log.item, 0] == kind
        cells = N_USERS * np.count_nonzero(WORLD.item_features.value[20:, 0] == kind)
        assert fitted.value[of_kind] == pytest.approx(of_kind.sum() / cells, rel=1e-3)


def test_naive_bayes_recovers_propensities_by_label() -> None:
    world = World(2, by_label=True)
    assert world.fit(NaiveBayes()).value == pytest.approx(world.log.propensity, rel=0.1)
    among = ~np.isin(world.random.user * N_ITEMS + world.random.item, world.log.user * N_ITEMS + world.log.item)
    apart = world.random.select(among)
    right, wrong = (world.fit(NaiveBayes(drawn=each), random=apart).value for each in (Drawn.UNSEEN, Drawn.ALL))
    assert right == pytest.approx(world.log.propensity, rel=0.1)
    assert np.abs(wrong - world.truth[world.log.user, world.log.item]).max() > 0.05


# ---------------------------------------------------------------------------------------------------------- calibration


def test_true_propensities_are_calibrated_and_wrong_ones_are_not() -> None:
    world = World(3)
    right = calibration(world.fit(GivenPropensity()), world.log, world.random)
    assert right.drawn is Drawn.ALL
    assert sum(each.low <= each.predicted <= each.high for each in right.bins) >= len(right.bins) - 1
    wrong = calibration(world.fit(PopularityPower()), world.log, world.random)
    assert wrong.error > 0.1 > right.error


def test_labels_show_what_pairs_cannot() -> None:
    """Exposure by label: features know nothing of it, so bins can look right where labels do not."""
    world = World(4, by_label=True)
    found = calibration(world.fit(Logistic()), world.log, world.random)
    assert not any(each.low <= each.predicted <= each.high for each in found.labels)
    kept = calibration(world.fit(GivenPropensity()), world.log, world.random)
    for each, truth in zip(kept.labels, (0.05, 0.3), strict=True):
        assert each.predicted == pytest.approx(truth)
        assert each.low <= truth * 1.1
        assert each.high >= truth * 0.9


def test_a_slice_drawn_among_the_others_has_labels_only() -> None:
    world = World(5, by_label=True)
    among = ~np.isin(world.random.user * N_ITEMS + world.random.item, world.log.user * N_ITEMS + world.log.item)
    found = calibration(world.fit(GivenPropensity()), world.log, world.random.select(among))
    assert (found.drawn, found.bins, found.common) == (Drawn.UNSEEN, (), 0)
    assert [each.observed for each in found.labels] == pytest.approx([0.05, 0.3], rel=0.1)
    assert "only labels" in found.notes[1]


def test_calibration_as_text_and_plot() -> None:
    found = calibration(WORLD.fit(Logistic()), WORLD.log, WORLD.random, n_bins=4)
    text = calibration_text(found)
    assert len(text.splitlines()) == 1 + 4 + 2 + 1 + len(found.notes)
    plot = json.loads(json.dumps(calibration_plot(found)))
    assert len(plot["layer"][2]["data"]["values"]) == 6
    with pytest.raises(InputError, match="bins"):
        calibration(WORLD.fit(Logistic()), WORLD.log, WORLD.random, n_bins=0)


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("powr:0.5", "Did you mean power"),
        ("weight", "column:weight"),
        ("", "expected one of column"),
        ("power:much", "power=much; expected a number from 0"),
        ("power:-1", "power=-1; expected a number from 0"),
        ("power:nan", "power=nan; expected a number from 0"),
        ("logistic:0", "above 0"),
        ("logistic:x", "strength=x; expected a number above 0"),
        ("naive-bayes:label:some", "expected all or unseen"),
        ("column:", "column:NAME"),
    ],
)
def test_wrong_names_are_explained(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_propensity(text)


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.5, np.nan])
def test_propensities_outside_probabilities_name_their_row(wrong: float) -> None:
    propensity = np.full(len(WORLD.log), 0.5)
    propensity[6] = wrong
    with pytest.raises(InputError, match=r"row 7 .*expected a probability in \(0, 1\]"):
        GivenPropensity().fit(replace(WORLD.log, propensity=propensity))


def test_missing_columns_are_explained() -> None:
    with pytest.raises(InputError, match="--columns propensity=NAME"):
        GivenPropensity().fit(replace(WORLD.log, propensity=None))
    with pytest.raises(InputError, match="no propensities in a column 'weight'"):
        GivenPropensity("weight").fit(WORLD.log)
    assert GivenPropensity("p").fit(replace(WORLD.log, rewards={"p": np.full(len(WORLD.log), 0.25)})).value[0] == 0.25


def test_what_a_model_does_not_use_is_refused() -> None:
    with pytest.raises(InputError, match=r"random= is not used by propensity power\."):
        BiasedExposure(PopularityPower(), random=WORLD.random)
    with pytest.raises(InputError, match="random= is not used by a column of propensities"):
        BiasedExposure(random=WORLD.random)
    assert BiasedExposure(NaiveBayes(), random=WORLD.random).random is WORLD.random
    with pytest.raises(InputError, match="propensity power: power=half; expected a number from 0"):
        PopularityPower("half")  # type: ignore[arg-type]


def test_naive_bayes_needs_a_random_slice_of_the_same_world() -> None:
    log, random = WORLD.log, WORLD.random
    with pytest.raises(InputError, match="no random slice"):
        NaiveBayes().fit(log)
    with pytest.raises(InputError, match="the random slice has no rows"):
        NaiveBayes().fit(log, random=random.select(np.zeros(0, np.int64)))
    with pytest.raises(InputError, match=r"no row with label 1 .*P\(y\) would be 0"):
        NaiveBayes().fit(log, random=random.select(random.label == 0))
    with pytest.raises(InputError, match="no item in common"):
        NaiveBayes().fit(log, random=replace(random, items=Ids.of(range(700, 700 + N_ITEMS))))
    with pytest.raises(InputError, match="text never matches numbers"):
        NaiveBayes().fit(log, random=replace(random, items=Ids.of([f"i{i}" for i in range(N_ITEMS)])))
    with pytest.raises(InputError, match="no rewards called 'stars'"):
        NaiveBayes("stars").fit(log, random=random)
    with pytest.raises(InputError, match="more than once"):
        NaiveBayes().fit(log.select(np.array([0, 0, 1])), random=random)
    dense = replace(log, rewards={"label": np.ones(len(log))})
    few = Candidates(N_USERS, N_ITEMS, only=Pairs.of(log.user, log.item, n_units=N_USERS))
    with pytest.raises(InputError, match="more such rows than the random slice says exist"):
        NaiveBayes().fit(dense, random=random, candidates=few)
    with pytest.raises(InputError, match="number of candidates"):
        NaiveBayes().fit(log, random=random, candidates=Candidates(N_USERS, np.nan))
    one = replace(log, rewards={"label": np.ones(len(log))})
    assert len(np.unique(NaiveBayes().fit(one, random=random).value)) == 1  # a single class: one propensity


def test_naive_bayes_with_users_that_the_log_does_not_know() -> None:
    strangers = replace(WORLD.random, users=Ids.of(range(5000, 5000 + N_USERS)))
    found = NaiveBayes().fit(WORLD.log, random=strangers)
    assert found.value == pytest.approx(WORLD.fit(NaiveBayes()).value)
    assert np.array_equal(found.under(np.ones(N_USERS)), found.value)
    assert f"slice of {len(strangers):,} rows of 200 users (" in found.description


def test_the_error_of_strangers_is_in_the_replicates() -> None:
    """P(y) of the slice is redrawn by its users: the spread of log(1 / p) is that of log P(y), by linearisation."""
    few = WORLD.random.select(WORLD.random.user < 60)
    strangers = replace(few, users=Ids.of(range(5000, 5000 + N_USERS)))
    found = NaiveBayes().fit(WORLD.log, random=strangers)
    row, rng = int(np.flatnonzero(WORLD.log.label == 1)[0]), np.random.default_rng(0)
    # weights close to 1 leave the log as it is, so that only the slice varies
    nearly = [1 + 1e-9 * rng.normal(size=N_USERS) for _ in range(2000)]
    replicates = np.log([found.under(weight)[row] for weight in nearly])
    residual = np.bincount(few.user, weights=few.label - few.label.mean()) / few.label.sum()
    assert replicates.std() == pytest.approx(np.sqrt((residual**2).sum()), rel=0.06)
    assert replicates.mean() == pytest.approx(np.log(found.value[row]), abs=4 * replicates.std() / np.sqrt(2000))
    assert np.array_equal(found.under(nearly[0]), found.under(nearly[0].copy()))  # a function of the weights
    both = NaiveBayes().fit(WORLD.log, random=_half_strangers(WORLD.random))
    assert np.std([both.under(weight)[row] for weight in nearly[:50]]) > 0


def _half_strangers(random: Log) -> Log:
    names = np.where(np.arange(N_USERS) < 100, np.arange(N_USERS), 5000 + np.arange(N_USERS))
    return replace(random, users=Ids.of(names))


def test_intervals_hold_the_truth_with_a_slice_of_other_users() -> None:
    """100 worlds: a correct 95 % interval falls below 85 % less than once in 10,000 times."""
    held = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        label = rng.random((100, 10)) < 0.3
        user, item = np.nonzero(rng.random((100, 10)) < np.where(label, 0.5, 0.2))
        log = Log(Ids.of(range(100)), Ids.of(range(10)), user, item, {"label": label[user, item].astype(np.float64)})
        answers = (rng.random(100) < 0.3).astype(np.float64)
        other = Ids.of(range(1000, 1100))
        random = Log(other, log.items, np.arange(100), rng.integers(0, 10, 100), {"label": answers})
        found = tr.evaluate(
            {"m": rng.normal(size=(100, 10))}, log, exposure=tr.BiasedExposure(NaiveBayes(), random=random),
            metrics=[tr.Precision(5)], interval=tr.Bootstrap(100),
        ).estimates[0]  # fmt: skip
        held += found.low <= 0.3 <= found.high
    assert held >= 85


def test_rows_of_the_slice_that_are_no_candidates_leave_it() -> None:
    log, random = WORLD.log, WORLD.random
    plain = NaiveBayes().fit(log, random=random)
    outside = replace(
        random.select(np.arange(len(random)).repeat(2)),
        items=Ids.of(range(2 * N_ITEMS)),
        item=np.stack([random.item, random.item + N_ITEMS], axis=1).ravel(),
    )
    found = NaiveBayes().fit(log, random=outside)
    assert np.array_equal(found.value, plain.value)
    assert f"of {2 * len(random):,} rows, {len(random):,} are no candidates and were left out" in found.description
    check = calibration(found, log, outside)
    assert check.labels == calibration(plain, log, random).labels
    assert "are no candidates" in check.notes[1]
    # a catalogue of more items than have names may have them
    counted = Candidates(N_USERS, 2.0 * N_ITEMS)
    assert "left out" not in NaiveBayes().fit(log, random=outside, candidates=counted).description


@pytest.mark.parametrize("strange", [False, True])
def test_excluded_pairs_leave_the_slice(strange: bool) -> None:
    """Exclusions and explicit sets are of the log's users; of a stranger only the catalogue is known."""
    log, random = WORLD.log.select(WORLD.log.item >= 10), WORLD.random
    first = np.repeat(np.arange(N_USERS), 10), np.tile(np.arange(10), N_USERS)
    rest = np.repeat(np.arange(N_USERS), 30), np.tile(np.arange(10, N_ITEMS), N_USERS)
    excluding = Candidates(N_USERS, N_ITEMS, exclude=Pairs.of(*first, n_units=N_USERS))
    only = Candidates(N_USERS, N_ITEMS, only=Pairs.of(*rest, n_units=N_USERS))
    given = replace(random, users=Ids.of(range(5000, 5000 + N_USERS))) if strange else random
    kept = given if strange else given.select(given.item >= 10)
    share = float((kept.label == 1).mean())
    expected = (log.label == 1).sum() / (share * N_USERS * 30)
    for candidates in (excluding, only):
        found = NaiveBayes().fit(log, random=given, candidates=candidates)
        assert found.value[log.label == 1] == pytest.approx(expected)
    if not strange:
        with pytest.raises(InputError, match=r"none of .* rows is a candidate"):
            NaiveBayes().fit(log, random=random.select(random.item < 10), candidates=excluding)


def test_repeated_pairs_and_single_users_of_a_slice_are_refused() -> None:
    log, random = WORLD.log, WORLD.random
    twice = random.select(np.concatenate([np.arange(len(random)), [0]]))
    with pytest.raises(InputError, match="1 pairs occur more than once"):
        NaiveBayes().fit(log, random=twice)
    with pytest.raises(InputError, match="1 pairs occur more than once"):
        calibration(WORLD.fit(GivenPropensity()), log, twice)
    with pytest.raises(InputError, match="the random slice is of one user"):
        NaiveBayes().fit(log, random=random.select(random.user == 0))


def test_calibration_by_a_slice_of_other_users() -> None:
    """Labels can be compared, cells cannot; of a mixed slice the cells are those of the log's users."""
    fitted = WORLD.fit(GivenPropensity())
    strangers = replace(WORLD.random, users=Ids.of(range(5000, 5000 + N_USERS)))
    found = calibration(fitted, WORLD.log, strangers)
    assert (found.bins, found.common, found.expected_common) == ((), 0, 0.0)
    assert found.labels == calibration(fitted, WORLD.log, WORLD.random).labels
    mixed = calibration(fitted, WORLD.log, _half_strangers(WORLD.random))
    own = calibration(fitted, WORLD.log, WORLD.random.select(WORLD.random.user < 100))
    assert mixed.bins == own.bins


# ------------------------------------------------------------------------------------------------------ Python's border


def test_exposure_takes_text_frames_and_files(tmp_path: Path) -> None:
    random = pl.DataFrame({"user": [1, 2], "item": [1, 1], "label": [1, 0]})
    features = pl.DataFrame({"user": [1, 2], "age": [3, 4]})
    random.write_csv(tmp_path / "mar.csv")
    for given in (random, tmp_path / "mar.csv", str(tmp_path / "mar.csv"), tr.read(random)):
        made = tr.BiasedExposure("naive-bayes:label:unseen", random=given)
        assert made.propensity == NaiveBayes(drawn=Drawn.UNSEEN)
        assert made.random.label.tolist() == [1, 0]
    assert tr.BiasedExposure("logistic", user_features=features).user_features.names == ("age",)
    assert tr.BiasedExposure(NaiveBayes(drawn="unseen")) == tr.BiasedExposure("naive-bayes:label:unseen")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tr.BiasedExposure("powr:0.5"), "Did you mean power"),
        (lambda: tr.BiasedExposure(PopularityPower), "expected a propensity or its text, one of column"),  # type: ignore[arg-type]
        (lambda: tr.BiasedExposure(0.5), "expected a propensity or its text, one of column"),  # type: ignore[arg-type]
        (lambda: tr.BiasedExposure(NaiveBayes(), random=[1, 2]), "cannot read rows from a list"),
        (lambda: NaiveBayes(drawn="foo"), "drawn=foo; expected all or unseen"),
        (lambda: tr.SNIPS(clip="a"), "clip a; expected a number from 1"),  # type: ignore[arg-type]
        (lambda: tr.IPS(clip=np.float64(0.5)), "clip 0.5; expected a number from 1"),
    ],
)
def test_wrong_arguments_are_explained(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_popularity_needs_something_popular() -> None:
    with pytest.raises(InputError, match="no positives"):
        PopularityPower().fit(replace(WORLD.log, rewards={"label": np.zeros(len(WORLD.log))}))
    unlabelled = PopularityPower().fit(replace(WORLD.log, rewards={}))
    assert "rows of the item" in unlabelled.description
    stranger = replace(WORLD.random, items=Ids.of(range(900, 900 + N_ITEMS)))
    assert (unlabelled.at(stranger) == 0.01).all()
    with pytest.raises(InputError, match=r"clip=0; expected a number above 0 up to 1"):
        PopularityPower(0.5, 0.0)


def test_logistic_needs_features_of_everyone_and_both_classes() -> None:
    log, world = WORLD.log, WORLD
    with pytest.raises(InputError, match="no features"):
        Logistic().fit(log)
    short = Features(Ids.of(range(10)), np.arange(10.0)[:, None], ("age",), "ages.csv")
    with pytest.raises(InputError, match=r"ages.csv: no features for 190 of 200 ids of the log, such as 10, 11, 12"):
        Logistic().fit(log, user_features=short)
    with pytest.raises(InputError, match="one value only"):
        Logistic().fit(log, user_features=replace(world.user_features, value=np.ones((N_USERS, 1))))
    full = world.pick(*(each.ravel() for each in np.indices((N_USERS, N_ITEMS))))
    with pytest.raises(InputError, match="every candidate is in the log"):
        Logistic().fit(full, user_features=world.user_features)
    with pytest.raises(InputError, match="no rows"):
        Logistic().fit(log.select(np.zeros(0, np.int64)), user_features=world.user_features)
    with pytest.raises(InputError, match="does not know"):
        world.fit(Logistic()).at(replace(log, users=Ids.of(range(1, N_USERS + 1))))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"age": [1, 2]}, "no column 'user'"),
        ({"user": [1, 1], "age": [1, 2]}, "user 1 has several rows"),
        ({"user": [1, 2]}, "no features"),
        ({"user": [1, 2], "age": [1, None]}, "row 2 is empty"),
        ({"user": [1, 2], "age": [1.0, float("inf")]}, "row 2 is inf"),
        ({"user": list(range(200)), "name": [f"n{i}" for i in range(200)]}, "200 different texts"),
    ],
)
def test_wrong_features_are_explained(table: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_features(pl.DataFrame(table), kind="user")


def test_public_names_are_these() -> None:
    assert (tr.NaiveBayes, tr.Logistic, tr.PopularityPower) == (NaiveBayes, Logistic, PopularityPower)
