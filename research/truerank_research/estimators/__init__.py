"""Experimental estimators: they assume more than the data can check. Registered by entry points."""

EXPERIMENTAL = "experimental (truerank-research)"
