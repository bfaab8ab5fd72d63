"""Layer 2: what was shown, and how likely."""
