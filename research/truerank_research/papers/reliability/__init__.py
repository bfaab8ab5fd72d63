"""Paper 5: sampled candidates in offline evaluation (Pereira, Said, Santos)."""
