"""A small randomly exposed test set: which ways to evaluate find the truth, and which only its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from truerank.core.values import text_of
from truerank.estimators.judged.full import Full, Traditional
from truerank.estimators.judged.hajek import Hajek
from truerank.estimators.judged.horvitz_thompson import HorvitzThompson
from truerank.estimators.judged.pooled import Pooled
from truerank.estimators.judged.post_stratified import PostStratified
from truerank.estimators.judged.published import Published
from truerank.exposure.kinds import RandomExposure
from truerank.metrics.dcg import DCG
from truerank.metrics.precision import Precision
from truerank.metrics.recall import Recall
from truerank.studies.demo.chapter import Chapter, Say, command
from truerank.studies.demo.made import NEWCOMERS, K, Made
from truerank.studies.demo.schemes import Finding, Scheme, find, sheets, why

DRAWS = 10
SCHEMES = (
    Scheme(Recall(K), Traditional(), Full(),
           "ranks 20 judged items instead of 1,000: its top 5 is a top 250, which rewards other models"),
    Scheme(Recall(K), Published(), Full(),
           "leaves out users without a judged relevant item, who are mostly those with few relevant items"),
    Scheme(Recall(K), Pooled(), Pooled(), "every relevant pair counts once, so no user needs to be left out"),
    Scheme(Recall(K), PostStratified(), Pooled(), "the same, steadier: how many places lists have is known"),
    Scheme(Precision(K), Traditional(), Full(), "ranks 20 judged items instead of 1,000"),
    Scheme(Precision(K), HorvitzThompson(), Full(), "each judged item stands for the 1 / share of items judged"),
    Scheme(Precision(K), Hajek(), Full(), "the same as a ratio: chance in how many judged items rank high cancels"),
    Scheme(DCG(K), HorvitzThompson(), Full(), "works for every metric that is a sum over relevant items"),
    Scheme(DCG(K), Hajek(), Full(), "the same as a ratio"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RandomTopic:
    """20 random items per user are judged, ten times over; six recommenders, one of them for users who like little."""

    name: ClassVar[str] = "random"
    about: ClassVar[str] = "A small random test set: what finds the truth, and what only the order."

    __str__ = text_of

    def tell(self, made: Made, *, seed: int, say: Say | None) -> Chapter:
        world = made.world
        n = len(world.random) // len(world.users)
        draws = [world.random, *(world.judge(n, seed=seed + draw) for draw in range(1, DRAWS))]
        findings = find(SCHEMES, world, made.models, draws, exposure=RandomExposure(), say=say)
        positive = world.rating > 3
        return Chapter(
            "A small random test set",
            (
                f"{len(world.users):,} users and {len(world.items):,} items: {positive.mean():.1%} of the pairs are "
                f"relevant (4 or 5 stars), {int((~positive.any(axis=1)).sum()):,} users like nothing. A deployed "
                f"system has shown {len(world.train):,} pairs, popular ones more often; five recommenders learnt from "
                f"them. {NEWCOMERS} is made up: it serves users who like few things well and gives the others what is "
                f"popular. For the test, {n} unseen items per user, chosen at random, were judged, {DRAWS} times. How "
                "good are the recommenders on everything unseen?",
                *sheets(findings),
                why(findings),
                orders(findings),
                command(
                    f"truerank evaluate {made.option('random')} --exposure random "
                    f"--exclude {made.folder / 'train.parquet'} {made.scores('ease', 'popularity')} "
                    f"--metric Recall@{K} --metric Precision@{K}"
                ),
            ),
        )


def orders(findings: Sequence[Finding]) -> str:
    """Why a number that misses the truth can find the order, and one that finds the truth can miss it."""
    published, pooled = (
        next(each for each in findings if isinstance(each.scheme.estimator, kind)) for kind in (Published, Pooled)
    )
    error = {name: value for name, value in published.error.items() if name not in ("random", NEWCOMERS)}
    draws = len(published.values)
    return (
        "An order is not a proof. It needs no more than that all recommenders are wrong by about the same share: "
        f"published is off by {min(error.values()):+.0%} to {max(error.values()):+.0%} for the five that learnt from "
        f"the log, and finds their order in {published.orders_right(without=NEWCOMERS)} of {draws} draws. Add "
        f"{NEWCOMERS}, for whose users it is blind ({published.error[NEWCOMERS]:+.0%}): the order is found in "
        f"{published.orders_right()} of {draws}, and more users would not help.\n"
        f"Pooled recall is on target for all six, and still misses the order in {draws - pooled.orders_right()} of "
        f"{draws} draws, because neighbours differ by less than chance moves them. More users do help, and the "
        "intervals and verdicts of `truerank evaluate` say which pairs are shown."
    )
