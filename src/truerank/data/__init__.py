"""Layer 1: files and frames -> Log."""
