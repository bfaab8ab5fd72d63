"""Paper 3: DCG as an off-policy metric (Jeunen, Potapov, Ustimenko)."""
