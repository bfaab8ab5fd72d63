"""Layer 1: the one design behind every draw, of splits, logging policies, interventions, samplers and studies alike.

`pools` has members of pools and the order in which their keyed exponential clocks ring (the one draw), `clocks` the
probabilities of such orders, `inclusion` those of being drawn from many pools, `designs` the values that put these
together, and `unequal` samples of fixed size with given probabilities.
"""
