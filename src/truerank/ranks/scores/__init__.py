"""What recommenders say: dense, factors, lists, sparse, functions; read from and written to files."""
