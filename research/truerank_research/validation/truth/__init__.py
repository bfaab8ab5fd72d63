"""How close estimators come to the truth: worlds in which every label is known, of which few are shown at random."""
