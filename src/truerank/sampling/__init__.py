"""Layer 2: the one design behind every draw: exponential clocks, inclusion probabilities, draws, every outcome."""
