"""The experiments of five papers, run again: one folder for each paper, one module for each experiment.

A new experiment is one new module: `truerank reproduce list`, its pages and the tests find it by themselves.
"""
