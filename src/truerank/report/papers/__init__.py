"""Reproduced experiments as pages: what was claimed, what was found, the pictures and the tables."""
