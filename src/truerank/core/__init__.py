"""The types everything is made of; read this first.

Almost everything reported is a ratio of two sums over units (a unit is a user). A metric says what one relevant
item at a rank is worth. An estimator says how the rows that were observed stand for those that were not. So
metric x estimator is a product, and intervals, comparisons and merging are written once, for all of them:

    Log, Scores --rank--> Ranks --Metric, Estimator--> Terms --Interval--> Estimate --> Results (results.py)
"""
