"""Scores -> Ranks: counted in tiles, ties settled here and only here."""
