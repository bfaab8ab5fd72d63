"""Policies of ranked logs: how much each of them exposes the items of a session."""
