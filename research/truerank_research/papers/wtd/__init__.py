"""Paper 4: intervened test sets (Carraro, Bridge), and the numbers that its tables print."""

from __future__ import annotations

from collections.abc import Mapping

SETS = ("FULL", "REG", "SKEW", "WTD", "WTD_H")
WEIGHTED = SETS[2:]
TRUTH = "truth"
NON_PERSONAL, PERSONAL = ("PosPop", "AvgRating"), ("UB_KNN", "IB_KNN", "MF")
RECOMMENDERS = (*NON_PERSONAL, *PERSONAL)

# table 1, by its lines: CoatShopping MAR and MNAR, Webscope R3 MAR and MNAR
COLUMNS_1 = ("Coat, MAR", "Coat, MNAR", "Webscope, MAR", "Webscope, MNAR")
TABLE_1: Mapping[str, tuple[float, ...]] = {
    "ratings": (4640, 6960, 54_000, 129_000),
    "users": (290, 290, 5400, 5400),
    "items": (300, 300, 1000, 1000),
    "ratings per user": (16, 24, 10, 23),
    "ratings per item": (15, 23, 54, 129),
    "mean rating": (2.22, 2.61, 1.81, 2.87),
    "sparsity": (0.94, 0.92, 0.99, 0.97),
}
# distance from the printed number that is allowed: the paper truncates digits where it could round
TRUNCATED = {"ratings per user": 1.0, "ratings per item": 1.0, "mean rating": 0.01, "sparsity": 0.01}

# table 2: recall at 10 on the ground truth, then its difference in percent on each test set
COAT: Mapping[str, tuple[float, ...]] = {
    "PosPop": (0.066, 133, 124, 13, 1, -43),
    "AvgRating": (0.068, 61, 53, 31, 6, 24),
    "UB_KNN": (0.067, 229, 225, 112, 90, 34),
    "IB_KNN": (0.073, 236, 227, 105, 82, 26),
    "MF": (0.063, 180, 176, 179, 123, 102),
}
WEBSCOPE: Mapping[str, tuple[float, ...]] = {
    "PosPop": (0.056, 280, 272, -14, -68, -79),
    "AvgRating": (0.016, -77, -77, -50, -51, -49),
    "UB_KNN": (0.073, 273, 265, 35, -9, -24),
    "IB_KNN": (0.071, 313, 306, 45, -2, -17),
    "MF": (0.077, 258, 252, 90, 66, 52),
}

# Kendall's correlation with the order of the ground truth, of all recommenders (table 3) and without MF (table 4)
CORRELATIONS: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    "Table 3": {"CoatShopping": (0.2, 0.2, 0.0, 0.0, 0.0), "Webscope": (0.6, 0.6, 0.8, 0.8, 0.8)},
    "Table 4": {"CoatShopping": (0.3, 0.3, 0.7, 0.7, 0.7), "Webscope": (0.68, 0.68, 0.68, 0.68, 0.68)},
}
