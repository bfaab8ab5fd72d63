"""Layer 8: grids of evaluations, simulators."""
