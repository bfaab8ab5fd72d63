"""Paper 4: intervened test sets (Carraro, Bridge), and the numbers that its tables print."""

from __future__ import annotations

from truerank_research.claims import printed_table

SETS = ("FULL", "REG", "SKEW", "WTD", "WTD_H")
WEIGHTED = SETS[2:]
TRUTH = "truth"
NON_PERSONAL, PERSONAL = ("PosPop", "AvgRating"), ("UB_KNN", "IB_KNN", "MF")
RECOMMENDERS = (*NON_PERSONAL, *PERSONAL)

# table 1, by its lines: CoatShopping MAR and MNAR, Webscope R3 MAR and MNAR
COLUMNS_1 = ("Coat, MAR", "Coat, MNAR", "Webscope, MAR", "Webscope, MNAR")
TABLE_1 = printed_table("""
ratings | 4640 6960 54000 129000
users | 290 290 5400 5400
items | 300 300 1000 1000
ratings per user | 16 24 10 23
ratings per item | 15 23 54 129
mean rating | 2.22 2.61 1.81 2.87
sparsity | .94 .92 .99 .97""")
# distance from the printed number that is allowed: the paper truncates digits where it could round
TRUNCATED = {"ratings per user": 1.0, "ratings per item": 1.0, "mean rating": 0.01, "sparsity": 0.01}

# table 2: recall at 10 on the ground truth, then its difference in percent on each test set
COAT = printed_table("""
PosPop | .066 133 124 13 1 -43
AvgRating | .068 61 53 31 6 24
UB_KNN | .067 229 225 112 90 34
IB_KNN | .073 236 227 105 82 26
MF | .063 180 176 179 123 102""")
WEBSCOPE = printed_table("""
PosPop | .056 280 272 -14 -68 -79
AvgRating | .016 -77 -77 -50 -51 -49
UB_KNN | .073 273 265 35 -9 -24
IB_KNN | .071 313 306 45 -2 -17
MF | .077 258 252 90 66 52""")

# Kendall's correlation with the order of the ground truth, of all recommenders (table 3) and without MF (table 4)
CORRELATIONS = {
    "Table 3": printed_table("CoatShopping | .2 .2 0 0 0\nWebscope | .6 .6 .8 .8 .8"),
    "Table 4": printed_table("CoatShopping | .3 .3 .7 .7 .7\nWebscope | .68 .68 .68 .68 .68"),
}
