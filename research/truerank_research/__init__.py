"""Research around truerank: reproductions of papers, validation studies, experimental estimators and learners.

`python -m truerank_research list`, `run NAME`, `pages`; `runner` describes how a study is written.
"""
