"""Debias can be unreliable: what recall on randomly exposed data says, and how to estimate the true one (URE)."""

from __future__ import annotations

from truerank.studies.papers.paper import Paper

AUTHORS = "Wang, Shi, Zhang, Wang, Pan, Feng"
SAYS = (
    "recall among randomly shown items, by which debiased recommenders are compared, does not tell which of them "
    "finds most of what users like among all items, and that their own estimate, URE, does"
)

PAPER = Paper(
    key="ure",
    short="Unbiased recall",
    title="Debias Can be Unreliable: Mitigating Bias Issue in Evaluating Debiasing Recommendation",
    authors=AUTHORS,
    year=2024,
    says=SAYS,
    parts=(
        "Figure 1",
        "Figure 2",
        "Figure 3",
        "Figure 4",
        "Figure 5",
        "Table 1",
        "Table 2",
        "Table 3",
        "Table 4",
        "Theorem 1",
        "Theorem 2",
        "Theorem 3",
    ),
    main=(("E-U1", "large"), ("E-U2", "trap"), ("E-U3", "better"), ("E-U5", "user"), ("E-U5", "mean")),
)

SHORT = Paper(
    key="ure-short",
    short="Unbiased recall, short version",
    title="Debias Can Be Unreliable: Mitigating Bias in Evaluating Debiasing Recommendation (short version)",
    authors=AUTHORS,
    year=2025,
    says=SAYS,
    parts=("Figure 1", "Figure 2", "Figure 3", "Table 1", "Theorem 1", "Theorem 2"),
)
