"""What a call that makes no sense must end in."""

from __future__ import annotations

from typing import Any

import pytest

from truerank.core.errors import InputError, TruerankError


def refused(words: str, error: type[TruerankError] = InputError) -> Any:
    """A context whose call must be refused, in a sentence in which this pattern is found."""
    return pytest.raises(error, match=words)
