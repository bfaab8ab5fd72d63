"""Pages of studies of our own: a module for each, of the name of the study, whose `page` makes it from the result.

`report/study_pages.py` finds and writes them; `report/study_charts.py` has the pictures that several begin with.
"""
