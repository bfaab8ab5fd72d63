"""Papers 1 and 2: recall on randomly exposed data, and URE (Wang, Shi, Zhang, Wang, Pan, Feng)."""
