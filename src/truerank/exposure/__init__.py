"""Layer 3: what was shown, and how likely."""
