"""Layer 1: the one design behind every draw, of splits, loggers, interventions, candidate samplers and studies alike.

`pools` has members of pools and the order in which their keyed exponential clocks ring (the one draw), `clocks` the
probabilities of such orders, `inclusion` those of being drawn from many pools, and `designs` the values that put these
together and list their every outcome.
"""
