"""Simulated datasets whose true metrics can be computed, and the demo."""
