"""On (normalised) discounted cumulative gain as an off-policy evaluation metric for top-n recommendation."""

from __future__ import annotations

from truerank.studies.papers.paper import Paper

PAPER = Paper(
    key="dcg",
    short="DCG as an off-policy metric",
    title="On (Normalised) Discounted Cumulative Gain as an Off-Policy Evaluation Metric for Top-n Recommendation",
    authors="Jeunen, Potapov, Ustimenko",
    year=2024,
    says=(
        "DCG, with every item weighted by how likely it was seen, is an unbiased estimate of what a recommender earns "
        "online, while nDCG, its normalised form, can prefer the worse of two recommenders"
    ),
    parts=("Table 1", "Table 2", "Figure 1", "Figure 2"),
    main=(("E-D5", "unbiased"), ("E-D1", "inverted"), ("E-D2", "often"), ("E-D5", "correlates"), ("E-D5", "negative")),
)
