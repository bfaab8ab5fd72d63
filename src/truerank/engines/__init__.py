"""Engines: what maps a pure function over chunks of whole units."""
