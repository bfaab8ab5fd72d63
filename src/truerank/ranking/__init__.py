"""Layer 3: Scores -> Ranks."""
