"""The same bits every time: torch on so many threads, with deterministic algorithms, and everything put back after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def repeatable(threads: int) -> Iterator[None]:
    """Leaves no trace: threads and algorithms of the caller are as before, and no global seed is touched."""
    before = (
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.utils.deterministic.fill_uninitialized_memory,
    )
    try:
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False  # slow, and nothing reads such memory
        with torch.device("cpu"), torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1], warn_only=before[2])
        torch.utils.deterministic.fill_uninitialized_memory = before[3]
