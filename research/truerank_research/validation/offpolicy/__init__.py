"""What off-policy estimates are worth on feeds whose truth is known, and on the Open Bandit sample."""
