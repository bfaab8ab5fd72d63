"""Validation of intervals and verdicts in simulated environments with known truth."""
