"""Estimators for labels that are complete, or a uniform sample."""
