"""Layer 9: Results -> tables, text, HTML."""
