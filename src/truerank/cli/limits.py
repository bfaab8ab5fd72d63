"""Limits of the system that are looked at before any work, because what meets them later cannot say so."""

from __future__ import annotations

import os

from truerank.core.errors import InputError

LEAST_SPACE = 7 * 2**28  # bytes of addresses that libraries need to load
FOR_A_CORE = 2**27  # and for the threads of each core


def check_space() -> None:
    """Refuse a limit of address space in which the libraries cannot even load: they crash, or spin for ever."""
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    least = LEAST_SPACE + FOR_A_CORE * (os.cpu_count() or 1)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < least:
        raise InputError(
            f"memory: the process may use {limit / 2**20:,.0f} MB of addresses; expected at least "
            f"{least / 2**20:,.0f} MB. Raise the limit (ulimit -v)."
        )
