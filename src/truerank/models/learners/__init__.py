"""How the learned models are trained, in torch. Imported only when one of them is fitted."""
