"""Debiased offline evaluation of recommender systems: a weighted-sampling approach."""

from __future__ import annotations

from truerank.studies.papers.paper import Paper

PAPER = Paper(
    key="wtd",
    short="intervened test sets",
    title="Debiased Offline Evaluation of Recommender Systems: A Weighted-Sampling Approach",
    authors="Carraro, Bridge",
    year=2020,
    says=(
        "test ratings that are drawn from an ordinary log with weights (WTD, or WTD_H, which needs no random data) "
        "give nearly the recall that randomly collected ratings give"
    ),
    parts=("Table 1", "Table 2", "Table 3", "Table 4"),
    main=(("E-W1", "far"), ("E-W1", "best"), ("E-W1", "no random data"), ("E-W2", "harm")),
)
