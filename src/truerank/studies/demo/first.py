"""The demo at first sight: one question, one picture, one lesson."""

from __future__ import annotations

from truerank.core.estimator import Estimator
from truerank.core.results import Results
from truerank.estimators.judged.full import Full
from truerank.estimators.judged.pooled import Pooled
from truerank.estimators.judged.published import Published
from truerank.evaluation.judged import evaluate
from truerank.exposure.kinds import RandomExposure
from truerank.metrics.recall import Recall
from truerank.studies.demo.chapter import Bar, Chapter, Picture, command
from truerank.studies.demo.made import NEWCOMERS, K, Made

SHOWN = (NEWCOMERS, "ease", "item-knn", "popularity")
PLACES = ("first", "second", "third", "last")


def tell_first(made: Made) -> Chapter:
    """Recall per user and pooled, from one random test set, with intervals beside the truth."""
    world = made.world
    models = {name: made.models[name] for name in SHOWN}
    known = evaluate(models, world.truth, exclude=world.train, metrics=[Recall(K)], estimators=[Full(), Pooled()])
    found = evaluate(models, world.random, exclude=world.train, exposure=RandomExposure(), metrics=[Recall(K)],
                     estimators=[Published(), Pooled()])  # fmt: skip
    per_user = _picture(
        "per user: each user's own share, then the mean over users", known, found, truth=Full(), asked=Published()
    )
    pooled = _picture(
        "pooled: of everything that anybody likes, the share found", known, found, truth=Pooled(), asked=Pooled()
    )
    value, told = _values(found, Published()), _values(known, Full())
    lost = {name: 1 - value[name] / told[name] for name in SHOWN}
    others = sorted(lost[name] for name in SHOWN if name != NEWCOMERS)
    place = {who: sorted(SHOWN, key=lambda name: -where[name]).index(NEWCOMERS) for who, where in
             (("truth", told), ("estimate", value))}  # fmt: skip
    counted, all_users = (next(each.units for each in results.estimates) for results in (found, known))
    n = len(world.random) // len(world.users)
    return Chapter(
        f"Which recommender finds most of what users like with its first {K} items?",
        (
            f"{len(world.users):,} users and {len(world.items):,} items whose every rating is known, so the truth is "
            f"known too. The test: {n} random items per user are judged. Recall@{K} is the share of liked items found.",
            "◆ the truth   ├──┤ what the test says (95 % interval)",
            per_user,
            pooled,
            f"Per user, {per_user.held} of {len(SHOWN)} intervals hold the truth. Only users with a liked item among "
            f"their {n} count ({counted:,} of {all_users:,}), and those like many things. Three recommenders lose "
            f"alike ({others[0]:.0%} to {others[-1]:.0%}), so their order can survive: a biased number can look right. "
            f"{NEWCOMERS}, made for users who like few things, loses {lost[NEWCOMERS]:.0%}: truly "
            f"{PLACES[place['truth']]}, it comes out {PLACES[place['estimate']]}.",
            f"Pooled, nobody is left out, and {pooled.held} of {len(SHOWN)} hold: another question, with another "
            "answer, that this test can give.",
            f"Its files are in {made.folder}/; `truerank demo --all` tells the rest. Next, then with your own files:",
            command(
                f"truerank evaluate {made.option('random')} --exposure random --exclude "
                f"{made.folder / 'train.parquet'} {made.scores('ease', 'popularity')}"
            ),
        ),
    )


def _picture(title: str, known: Results, found: Results, *, truth: Estimator, asked: Estimator) -> Picture:
    told = _values(known, truth)
    said = {each.model: each for each in found.estimates if each.estimator == asked.about.name}
    bars = [Bar(name, told[name], said[name].low, said[name].high) for name in SHOWN]
    return Picture(title, tuple(sorted(bars, key=lambda each: -each.truth)))


def _values(results: Results, estimator: Estimator) -> dict[str, float]:
    return {each.model: each.value for each in results.estimates if each.estimator == estimator.about.name}
