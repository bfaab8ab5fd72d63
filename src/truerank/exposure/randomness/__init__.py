"""Is this log random? Tests, and what they found in words."""
