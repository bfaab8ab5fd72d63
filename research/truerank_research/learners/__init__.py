"""Recommenders trained with torch. Registered by entry points."""
