"""The papers whose experiments are reproduced; each has one page, with one picture of what an experiment measured."""

from __future__ import annotations

from dataclasses import dataclass

from truerank_research.pages import Picture


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper with all its tables and figures.

    `says` completes "They say that"; `main` has experiment and key of the claims that the paper is known for.
    """

    key: str  # the name of its page
    short: str
    title: str
    authors: str
    year: int
    says: str
    parts: tuple[str, ...]
    picture: Picture
    picture_study: str  # the experiment whose cells it draws
    main: tuple[tuple[str, str], ...] = ()


URE_AUTHORS = "Wang, Shi, Zhang, Wang, Pan, Feng"
URE_SAYS = (
    "recall among randomly exposed items, by which debiased recommenders are compared, does not tell which of them "
    "finds most of what users like among all items, and that their own estimate, URE, does"
)
PLAIN = {"N̄ = ": "labelled items: ", "N⁺": "positives", "1̄": "1 (sample)", "5̄": "5 (sample)"}  # letters that fonts lack
DCG = Paper(
    key="dcg",
    short="DCG as an off-policy metric",
    title="On (Normalised) Discounted Cumulative Gain as an Off-Policy Evaluation Metric for Top-n Recommendation",
    authors="Jeunen, Potapov, Ustimenko",
    year=2024,
    says="DCG, with every item weighted by its probability of being seen, is an unbiased estimate of the reward that a "
    "recommender receives online, while nDCG, its normalised form, can prefer the worse of two recommenders",
    parts=("Table 1", "Table 2", "Figure 1", "Figure 2"),
    picture=Picture(
        "Mean correlation over feeds of daily estimates with daily online reward, on a simulated platform",
        "ranges", x="row", y="obtained", group="column", low="low", high="high", y_title="correlation over days",
        where={"table": ["Table 2"], "column": ["DCG pbm, Q̂", "nDCG pbm, Q̂"]}, labels={"Q̂": "debiased"}, level=0.0,
    ),
    picture_study="E-D5",
    main=(("E-D5", "unbiased"), ("E-D1", "inverted"), ("E-D2", "often"), ("E-D5", "correlates"), ("E-D5", "negative")),
)  # fmt: skip
RELIABILITY = Paper(
    key="reliability",
    short="sampled candidates",
    title="On the Reliability of Sampling Strategies in Offline Recommender Evaluation",
    authors="Pereira, Said, Santos",
    year=2025,
    says="ranking a sample of the items instead of all of them can change which of two models looks better, and that "
    "how the sample is drawn and how biased the log is decide how often",
    parts=("Table 1", "Figure 1", "Figure 2", "Figure 3", "Figure 4", "Figure 5"),
    picture=Picture(
        "Kendall's τ of sampled evaluation with the truth, by sampler, logging policy and sparsity, on KuaiRec",
        "points", x="column", y="obtained", group="row", x_title="sampler", y_title="τ with the true order of models",
        where={
            "table": ["KuaiRec, released: τ with all candidates where everything is shown, n = 1,000"],
            "row": ["uniform, 10 %", "uniform, 95 %", "popularity, 10 %", "popularity, 95 %", "positivity, 95 %"],
        },
    ),
    picture_study="E-S4",
    main=(("E-S1", "Q1.7"), ("E-S2", "Q2.2"), ("E-S4", "C.1"), ("E-S4", "C.2"), ("E-S4", "C.3")),
)  # fmt: skip
URE = Paper(
    key="ure",
    short="Unbiased recall",
    title="Debias Can be Unreliable: Mitigating Bias Issue in Evaluating Debiasing Recommendation",
    authors=URE_AUTHORS,
    year=2024,
    says=URE_SAYS,
    parts=(
        "Figure 1", "Figure 2", "Figure 3", "Figure 4", "Figure 5", "Table 1", "Table 2", "Table 3", "Table 4",
        "Theorem 1", "Theorem 2", "Theorem 3",
    ),
    picture=Picture(
        "Bias of estimates where the truth is known, with 3 Monte-Carlo standard errors",
        "ranges", x="row", y="obtained", low="low", high="high", y_title="bias in % of the truth",
        where={"column": ["bias in %"]}, labels=PLAIN, level=0.0,
    ),
    picture_study="E-U5",
    main=(("E-U1", "large"), ("E-U2", "trap"), ("E-U3", "better"), ("E-U5", "user"), ("E-U5", "mean")),
)  # fmt: skip
URE_SHORT = Paper(
    key="ure-short",
    short="Unbiased recall, short version",
    title="Debias Can Be Unreliable: Mitigating Bias in Evaluating Debiasing Recommendation (short version)",
    authors=URE_AUTHORS,
    year=2025,
    says=URE_SAYS,
    parts=("Figure 1", "Figure 2", "Figure 3", "Table 1", "Theorem 1", "Theorem 2"),
    picture=Picture(
        "Agreement of three schemes with the true Recall@K over models, 80 labelled items per user, on KuaiRec",
        "lines", x="row", y="obtained", group="column", low="low", high="high", x_title="K", y_title="Kendall's τ",
        where={
            "table": ["Figure 5a: Kendall's τ with Recall@K, N̄ = 80"], "column": ["URE@K", "Recall@1̄", "Recall@5̄"],
        },
        labels=PLAIN, numeric=True, log=True,
    ),
    picture_study="E-U3",
)  # fmt: skip
WTD = Paper(
    key="wtd",
    short="intervened test sets",
    title="Debiased Offline Evaluation of Recommender Systems: A Weighted-Sampling Approach",
    authors="Carraro, Bridge",
    year=2020,
    says="test ratings that are drawn from an ordinary log with weights (WTD, or WTD_H, which needs no random data) "
    "give nearly the recall that randomly collected ratings give",
    parts=("Table 1", "Table 2", "Table 3", "Table 4"),
    picture=Picture(
        "Difference of Recall@10 on each test set from that on randomly collected ratings, on Coat",
        "ranges", x="row", y="obtained", group="column", low="low", high="high", y_title="difference in %",
        where={
            "table": ["Table 2, Recall@10"], "column": ["FULL, %", "REG, %", "SKEW, %", "WTD, %", "WTD_H, %"],
        },
        labels={", %": ""}, level=0.0,
    ),
    picture_study="E-W1",
    main=(("E-W1", "far"), ("E-W1", "best"), ("E-W1", "no random data"), ("E-W2", "harm")),
)  # fmt: skip
PAPERS = (URE, URE_SHORT, DCG, WTD, RELIABILITY)
