"""Estimators for logs in which some pairs were likelier to be shown than others."""
