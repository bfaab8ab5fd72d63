"""On the reliability of sampling strategies in offline recommender evaluation."""

from __future__ import annotations

from truerank.studies.papers.paper import Paper

PAPER = Paper(
    key="reliability",
    short="sampled candidates",
    title="On the Reliability of Sampling Strategies in Offline Recommender Evaluation",
    authors="Pereira, Said, Santos",
    year=2025,
    says=(
        "ranking a sample of the items in place of all of them can change which of two models looks better, and that "
        "how the sample is drawn and how biased the log is decide how often"
    ),
    parts=("Table 1", "Figure 1", "Figure 2", "Figure 3", "Figure 4", "Figure 5"),
    main=(("E-S1", "Q1.7"), ("E-S2", "Q2.2"), ("E-S4", "C.1"), ("E-S4", "C.2"), ("E-S4", "C.3")),
)
