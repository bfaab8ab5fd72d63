"""Layer 6: Terms -> Estimate."""
