"""Layer 8: question, prepare, measure, conclude; `evaluate` and `off_policy` on top."""
