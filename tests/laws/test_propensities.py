"""Laws of propensity models: in (0, 1], the same in any chunks, refitted without any group of users, recovering what
made the log; bad input explained."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refused
from terms import all_items, chunks_of, facts_of

import truerank as tr
from truerank.core.arrays import Ints
from truerank.core.estimator import Groups, Learned, Learner, learn
from truerank.core.ids import Ids
from truerank.core.log import Log, Pairs
from truerank.core.options import Drawn
from truerank.core.ranking import Candidates, Pool
from truerank.estimators.weighted import IPS, SNIPS
from truerank.exposure.kinds import BiasedExposure
from truerank.exposure.propensities import (
    Fitted,
    GivenPropensity,
    PropensityLearner,
    PropensityModel,
    catalogue,
    fit_propensities,
    logistic,
    parse_propensity,
)
from truerank.exposure.propensities.calibration import calibration
from truerank.exposure.propensities.counted import NaiveBayes, PopularityPower
from truerank.exposure.propensities.logistic import Logistic
from truerank.io.features import Features, read_features
from truerank.metrics.additive import Precision

N_USERS, N_ITEMS = 200, 40
MODELS: list[PropensityModel] = [
    *(cls() for cls in catalogue().values()),
    PopularityPower(1.0, 0.05), NaiveBayes(drawn=Drawn.UNSEEN), NaiveBayes("rating"), Logistic(10.0),
]  # fmt: skip


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
        self.seen = rng.random((N_USERS, N_ITEMS)) < self.truth
        self.log = self.pick(*np.nonzero(self.seen))
        self.random = self.pick(*np.nonzero(rng.random((N_USERS, N_ITEMS)) < 0.2))

    def pick(self, user: Ints, item: Ints) -> Log:
        label = self.label[user, item]
        rewards = {"label": label, "rating": 1 + label + (user + item) % 2}
        return Log(self.users, self.items, user, item, rewards, propensity=self.truth[user, item])

    def fit(self, model: PropensityModel, **others: Any) -> Fitted:
        given: dict[str, Any] = {"random": self.random, "user_features": self.user_features}
        return fit_propensities(model, self.log, **(given | {"item_features": self.item_features} | others))


WORLD = World()


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_rows_can_be_asked_for_in_any_order_and_of_any_part(model: PropensityModel) -> None:
    """The same bits for a row whatever else is asked for, also where users are numbered otherwise."""
    found = WORLD.fit(model)
    value = found.at(WORLD.log)
    assert value.shape == (len(WORLD.log),)
    assert ((value > 0) & (value <= 1)).all()
    rows = np.random.default_rng(0).permutation(len(WORLD.log))[:300]
    assert np.array_equal(found.at(WORLD.log.select(rows)), value[rows])
    for chunk in chunks_of(WORLD.log, part=np.arange(N_USERS) % 7):
        assert np.array_equal(found.at(chunk.labels), value[np.isin(WORLD.log.user, chunk.unit)])


# --------------------------------------------------------------------------------------------------- chunks and groups

PARTS = {
    "three": np.arange(N_USERS) % 3,
    "one per user": np.arange(N_USERS),
    "reversed": N_USERS - np.arange(N_USERS),
    "halves": (np.arange(N_USERS) >= 100).astype(np.int64),
}
GROUPS = Groups.of(WORLD.users.keys(), n=5, seed=3, purpose="parts")
CANDIDATES = Candidates(
    N_USERS,
    N_ITEMS,
    exclude=Pairs.of(
        *(part.ravel() for part in np.nonzero(~WORLD.seen & (np.arange(N_ITEMS) % 9 == 0))), n_units=N_USERS
    ),
)


WITH_SLICES = [
    (model, random)
    for model in MODELS
    for random in (("own", "strangers", "both") if "random" in model.uses else ("own",))
]


def slices() -> dict[str, Log]:
    return {"own": WORLD.random, "strangers": _strangers(WORLD.random), "both": _half_strangers(WORLD.random)}


def learned(model: PropensityModel, part: Ints, random: Log, *, groups: Groups = GROUPS) -> tuple[Learned, Learner]:
    learner = PropensityLearner(model, random, WORLD.user_features, WORLD.item_features)
    facts = facts_of(WORLD.log, CANDIDATES)
    made = learn(
        [learner], lambda work: map(work, chunks_of(WORLD.log, CANDIDATES, part=part)), groups=groups, facts=facts
    )
    return made, learner


@pytest.mark.parametrize(("model", "random"), WITH_SLICES, ids=str)
def test_chunks_change_no_bit(model: PropensityModel, random: str) -> None:
    whole, learner = learned(model, np.zeros(N_USERS, np.int64), slices()[random])
    plain = WORLD.fit(model, random=slices()[random], candidates=CANDIDATES)
    assert np.array_equal(whole[learner].at(WORLD.log), plain.at(WORLD.log))
    assert whole[learner].description == plain.description
    for part in PARTS.values():
        found, other = learned(model, part, slices()[random])
        assert np.array_equal(found[other].at(WORLD.log), whole[learner].at(WORLD.log))
        assert found[other].description == whole[learner].description
        for group, refit in enumerate(whole.refits):
            assert np.array_equal(found.refits[group][other].at(WORLD.log), refit[learner].at(WORLD.log))


def test_chunks_of_a_capped_sample_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "MOST_CELLS", 900)
    whole, learner = learned(Logistic(), np.zeros(N_USERS, np.int64), WORLD.random)
    assert "weighted" in whole[learner].description
    for part in PARTS.values():
        found, other = learned(Logistic(), part, WORLD.random)
        assert np.array_equal(found[other].at(WORLD.log), whole[learner].at(WORLD.log))


@pytest.mark.parametrize(("model", "random"), [each for each in WITH_SLICES if each[0].fitted], ids=str)
def test_without_a_group_is_a_fit_to_the_other_users(model: PropensityModel, random: str) -> None:
    """Its users leave the log, the candidates and the slice; so do users of that group whom only the slice has."""
    made, learner = learned(model, PARTS["three"], slices()[random])
    assert len(made.refits) == len(GROUPS)
    for group, refit in enumerate(made.refits):
        left = (GROUPS.at(WORLD.users.keys()) == group).astype(np.int64)
        rest = next(iter(chunks_of(WORLD.log, CANDIDATES, part=left)))
        drawn = slices()[random]
        kept = drawn.select(GROUPS.at(drawn.users.keys())[drawn.user] != group)
        alone = fit_propensities(
            model, rest.labels, random=kept, user_features=WORLD.user_features, item_features=WORLD.item_features,
            candidates=rest.pools[Pool.CATALOGUE],
        )  # fmt: skip
        assert refit[learner].at(rest.labels) == pytest.approx(alone.at(rest.labels), abs=1e-12)
        assert not np.allclose(refit[learner].at(rest.labels), made[learner].at(rest.labels), atol=1e-9, rtol=0)


def test_a_fit_that_cannot_be_made_without_a_group_is_a_failure_with_its_reason() -> None:
    label = WORLD.log.label * (WORLD.log.user == 7)
    log = replace(WORLD.log, rewards={"label": label})
    assert label.any()
    made = learn(
        [learner := PropensityLearner(PopularityPower())],
        lambda work: map(work, chunks_of(log, part=PARTS["three"])),
        groups=GROUPS,
        facts=facts_of(log, CANDIDATES),
    )
    assert made[learner].description
    assert made.refits == ()
    assert list(made.failures.values()) == [1]
    assert "no positives" in next(iter(made.failures))


def test_values_of_rewards_are_merged_over_chunks() -> None:
    """No chunk has every rating; a value that some chunks lack is one of the model all the same."""
    rating = 1.0 + WORLD.log.user % 5
    log, random = (
        replace(each, rewards={"rating": (1.0 + each.user % 5).astype(np.float64)})
        for each in (WORLD.log, WORLD.random)
    )
    learner = PropensityLearner(NaiveBayes("rating"), random)
    facts = facts_of(log, all_items(log))
    made = learn(
        [learner], lambda work: map(work, chunks_of(log, part=np.arange(N_USERS) % 5)), groups=GROUPS, facts=facts
    )
    assert np.array_equal(made[learner].at(log), fit_propensities(NaiveBayes("rating"), log, random=random).at(log))
    assert len(np.unique(made[learner].at(log))) == len(np.unique(rating))
    many = replace(WORLD.log, rewards={"rating": WORLD.log.user.astype(np.float64)})
    with refused("different values; naive Bayes expects at most 100"):
        learn(
            [learner], lambda work: map(work, chunks_of(many, part=np.arange(N_USERS) % 5)), groups=GROUPS, facts=facts
        )


def test_learners_are_values() -> None:
    """What was learned is found again under an equal learner; other tables or seeds make another one."""
    exposure = BiasedExposure(NaiveBayes(), random=WORLD.random)
    assert exposure.learner(1) == exposure.learner(1)
    assert hash(exposure.learner(1)) == hash(exposure.learner(1))
    assert exposure.learner(1) != exposure.learner(2)
    assert exposure.learner(1) != BiasedExposure(NaiveBayes(), random=replace(WORLD.random)).learner(1)
    assert BiasedExposure("power:0.5").learner(0) == BiasedExposure(PopularityPower(0.5)).learner(0)
    assert BiasedExposure().learner(0) is None
    assert BiasedExposure(GivenPropensity()).learner(0) is None
    made, learner = learned(PopularityPower(), PARTS["three"], WORLD.random)
    sent, key = pickle.loads(pickle.dumps((made, learner)))
    assert np.array_equal(sent[key].at(WORLD.log), made[learner].at(WORLD.log))
    other = BiasedExposure(GivenPropensity("p")).learner(0)
    assert other is not None
    assert not other.refitted


def test_logistic_recovers_what_made_the_log() -> None:
    found = WORLD.fit(Logistic())
    everything = WORLD.pick(*(each.ravel() for each in np.indices((N_USERS, N_ITEMS))))
    assert np.abs(found.at(everything) - WORLD.truth.ravel()).mean() < 0.01


def test_a_sample_of_unobserved_pairs_is_weighted(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = WORLD.fit(Logistic()).at(WORLD.log)
    monkeypatch.setattr(logistic, "MOST_CELLS", 1200)
    assert "weighted" in WORLD.fit(Logistic()).description
    part, again, other = (WORLD.fit(Logistic(), seed=seed).at(WORLD.log) for seed in (0, 0, 1))
    assert np.abs(part - whole).mean() < 0.03
    assert part.mean() == pytest.approx(whole.mean(), rel=0.1)
    assert np.array_equal(again, part)
    assert not np.array_equal(other, part)


def test_pairs_outside_the_candidates_are_not_unobserved() -> None:
    """Items 0 to 19 were no candidates for anyone: rates are those among the others."""
    log = WORLD.log.select(WORLD.log.item >= 20)
    gone = Pairs.of(np.repeat(np.arange(N_USERS), 20), np.tile(np.arange(20), N_USERS), n_units=N_USERS)
    candidates = Candidates(N_USERS, N_ITEMS, exclude=gone)
    fitted = fit_propensities(Logistic(100.0), log, item_features=WORLD.item_features, candidates=candidates)
    for kind in (0.0, 1.0):
        of_kind = WORLD.item_features.value[log.item, 0] == kind
        cells = N_USERS * np.count_nonzero(WORLD.item_features.value[20:, 0] == kind)
        assert fitted.at(log)[of_kind] == pytest.approx(of_kind.sum() / cells, rel=1e-3)


def test_naive_bayes_recovers_propensities_by_label() -> None:
    world = World(2, by_label=True)
    assert world.fit(NaiveBayes()).at(world.log) == pytest.approx(world.log.propensity, rel=0.1)
    among = ~np.isin(world.random.user * N_ITEMS + world.random.item, world.log.user * N_ITEMS + world.log.item)
    apart = world.random.select(among)
    right, wrong = (world.fit(NaiveBayes(drawn=each), random=apart).at(world.log) for each in (Drawn.UNSEEN, Drawn.ALL))
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


# ------------------------------------------------------------------------------------------------------------ bad input


LOG, RANDOM = WORLD.log, WORLD.random
DENSE = replace(LOG, rewards={"label": np.ones(len(LOG))})
FEW = Candidates(N_USERS, N_ITEMS, only=Pairs.of(LOG.user, LOG.item, n_units=N_USERS))
AGES = Features(Ids.of(range(10)), np.arange(10.0)[:, None], ("age",), "ages.csv")
SAME_AGE = replace(WORLD.user_features, value=np.ones((N_USERS, 1)))
EVERYTHING = WORLD.pick(*(each.ravel() for each in np.indices((N_USERS, N_ITEMS))))
NOTHING = np.zeros(0, np.int64)
TWICE = RANDOM.select(np.append(np.arange(len(RANDOM)), 0))


def claimed(wrong: float) -> Log:
    """Propensities, one of which is wrong."""
    return replace(LOG, propensity=np.where(np.arange(len(LOG)) == 6, wrong, 0.5))


@pytest.mark.parametrize(
    ("model", "log", "how", "words"),
    [
        *(
            (GivenPropensity(), claimed(wrong), {}, r"row 7 .*expected a probability in \(0, 1\]")
            for wrong in (0.0, -0.1, 1.5, np.nan)
        ),
        (GivenPropensity(), replace(LOG, propensity=None), {}, r"columns=\{\"propensity\": \"NAME\"\}"),
        (GivenPropensity("weight"), LOG, {}, "no propensities in a column 'weight'"),
        (NaiveBayes(), LOG, {}, "no random slice"),
        (NaiveBayes(), LOG, {"random": RANDOM.select(NOTHING)}, "the random slice has no rows"),
        (NaiveBayes(), LOG, {"random": RANDOM.select(RANDOM.label == 0)}, r"no row with label 1 .*P\(y\) would be 0"),
        (NaiveBayes(), LOG, {"random": replace(RANDOM, items=Ids.of(range(700, 740)))}, "no item in common"),
        (NaiveBayes(), LOG, {"random": replace(RANDOM, items=Ids.of([f"i{i}" for i in range(N_ITEMS)]))}, "text never"),
        (NaiveBayes("stars"), LOG, {"random": RANDOM}, "no rewards called 'stars'"),
        (NaiveBayes(), LOG.select(np.array([0, 0, 1])), {"random": RANDOM}, "more than once"),
        (NaiveBayes(), DENSE, {"random": RANDOM, "candidates": FEW}, "more such rows than the random slice says exist"),
        (NaiveBayes(), LOG, {"random": RANDOM, "candidates": Candidates(N_USERS, np.nan)}, "number of candidates"),
        (NaiveBayes(), LOG, {"random": TWICE}, "1 pairs occur more than once"),
        (NaiveBayes(), LOG, {"random": RANDOM.select(RANDOM.user == 0)}, "the random slice is of one user"),
        (PopularityPower(), replace(LOG, rewards={"label": np.zeros(len(LOG))}), {}, "no positives"),
        (Logistic(), LOG, {}, "no features"),
        (Logistic(), LOG, {"user_features": AGES}, r"ages.csv: no features for 190 of 200 ids .*such as 10, 11, 12"),
        (Logistic(), LOG, {"user_features": SAME_AGE}, "one value only"),
        (Logistic(), EVERYTHING, {"user_features": WORLD.user_features}, "every candidate is in the log"),
        (Logistic(), LOG.select(NOTHING), {"user_features": WORLD.user_features}, "no rows"),
    ],
)  # fmt: skip
def test_what_cannot_be_fitted_is_explained(model: PropensityModel, log: Log, how: dict[str, Any], words: str) -> None:
    with refused(words):
        fit_propensities(model, log, **how)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        *(
            (partial(parse_propensity, text), words)
            for text, words in {
                "powr:0.5": "Did you mean power", "weight": "column:weight", "": "expected one of column",
                "power:much": "power=much; expected a number from 0", "power:nan": "power=nan; expected",
                "logistic:0": "above 0", "naive-bayes:label:some": "expected all or unseen", "column:": "column:NAME",
            }.items()
        ),
        (lambda: BiasedExposure(PopularityPower), "expected a propensity or its text"),  # type: ignore[arg-type]
        (lambda: BiasedExposure(PopularityPower(), random=RANDOM), r"random= is not used by propensity power\."),
        (lambda: BiasedExposure(random=RANDOM), "random= is not used by a column of propensities"),
        (lambda: BiasedExposure(NaiveBayes(), random=[1, 2]), "a list of rows: expected"),
        (lambda: PopularityPower(0.5, 0.0), r"clip=0; expected a number above 0 up to 1"),
        (lambda: WORLD.fit(Logistic()).at(replace(LOG, users=Ids.of(range(1, N_USERS + 1)))), "no features for 1 of"),
        (lambda: calibration(WORLD.fit(GivenPropensity()), LOG, TWICE), "1 pairs occur more than once"),
        (lambda: calibration(WORLD.fit(Logistic()), LOG, RANDOM, n_bins=0), "bins"),
        (lambda: SNIPS(clip="a"), "clip a; expected a number from 1"),  # type: ignore[arg-type]
        (lambda: IPS(clip=np.float64(0.5)), "clip 0.5; expected a number from 1"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_explained(call: Callable[[], Any], words: str) -> None:
    with refused(words):
        call()


def test_a_single_class_has_one_propensity() -> None:
    assert len(np.unique(fit_propensities(NaiveBayes(), DENSE, random=RANDOM).at(DENSE))) == 1


def test_popularity_without_labels_is_of_rows_and_has_a_floor() -> None:
    unlabelled = fit_propensities(PopularityPower(), replace(LOG, rewards={}))
    stranger = replace(RANDOM, items=Ids.of(range(900, 900 + N_ITEMS)))
    assert (unlabelled.at(stranger) == 0.01).all()


def _strangers(random: Log) -> Log:
    return replace(random, users=Ids.of(range(5000, 5000 + N_USERS)))


def _half_strangers(random: Log) -> Log:
    names = np.where(np.arange(N_USERS) < 100, np.arange(N_USERS), 5000 + np.arange(N_USERS))
    return replace(random, users=Ids.of(names))


@pytest.mark.slow
def test_intervals_cover_the_true_value_with_a_slice_of_other_users() -> None:
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
            {"m": rng.normal(size=(100, 10))}, log, exposure=BiasedExposure(NaiveBayes(), random=random),
            metrics=[Precision(5)],
        ).estimates[0]  # fmt: skip
        held += found.low <= 0.3 <= found.high
    assert held >= 85


def test_rows_of_the_slice_that_are_no_candidates_leave_it() -> None:
    log, random = WORLD.log, WORLD.random
    plain = fit_propensities(NaiveBayes(), log, random=random)
    outside = replace(
        random.select(np.arange(len(random)).repeat(2)),
        items=Ids.of(range(2 * N_ITEMS)),
        item=np.stack([random.item, random.item + N_ITEMS], axis=1).ravel(),
    )
    found = fit_propensities(NaiveBayes(), log, random=outside)
    assert np.array_equal(found.at(log), plain.at(log))
    assert f"of {2 * len(random):,} rows, {len(random):,} are no candidates and were left out" in found.description
    check = calibration(found, log, outside)
    assert check.labels == calibration(plain, log, random).labels
    assert "are no candidates" in check.notes[1]
    # a catalogue of more items than have names may have them
    counted = Candidates(N_USERS, 2.0 * N_ITEMS)
    assert "left out" not in fit_propensities(NaiveBayes(), log, random=outside, candidates=counted).description


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
        found = fit_propensities(NaiveBayes(), log, random=given, candidates=candidates)
        assert found.at(log)[log.label == 1] == pytest.approx(expected)
    if not strange:
        with refused(r"none of .* rows is a candidate"):
            fit_propensities(NaiveBayes(), log, random=random.select(random.item < 10), candidates=excluding)


# ------------------------------------------------------------------------------------------------------ Python's border


def test_exposure_takes_text_frames_and_files(tmp_path: Path) -> None:
    random = pl.DataFrame({"user": [1, 2], "item": [1, 1], "label": [1, 0]})
    features = pl.DataFrame({"user": [1, 2], "age": [3, 4]})
    random.write_csv(tmp_path / "mar.csv")
    for given in (random, tmp_path / "mar.csv", str(tmp_path / "mar.csv"), tr.read(random)):
        made = BiasedExposure("naive-bayes:label:unseen", random=given)
        assert made.propensity == NaiveBayes(drawn=Drawn.UNSEEN)
        assert made.random.label.tolist() == [1, 0]
    assert BiasedExposure("logistic", user_features=features).user_features.names == ("age",)
    assert BiasedExposure(NaiveBayes(drawn="unseen")) == BiasedExposure("naive-bayes:label:unseen")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"age": [1, 2]}, "no column 'user'"),
        ({"user": [1, 1], "age": [1, 2]}, "user 1 has several rows"),
        ({"user": [1, 2]}, "no features"),
        ({"user": [1, 2], "age": [1, None]}, "row 2 is None"),
        ({"user": [1, 2], "age": [1.0, float("inf")]}, "row 2 is inf"),
        ({"user": list(range(200)), "name": [f"n{i}" for i in range(200)]}, "200 different texts"),
    ],
)
def test_wrong_features_are_explained(table: dict[str, Any], words: str) -> None:
    with refused(words):
        read_features(pl.DataFrame(table), kind="user")
