"""Layer 2: files and frames -> Log."""
