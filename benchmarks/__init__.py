"""Speed as ratios measured in one run: against peers, and against limits of the machine."""
