"""`make test TORCH=0`: files that import torch or what is made with it, and tests/models/torch, are not collected."""

from __future__ import annotations

import os
import re
from pathlib import Path

NEEDS_TORCH = re.compile(r"^(import|from) (torch|truerank\.models\.learners)\b", flags=re.M)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Whether a file is left out; None leaves the question to pytest."""
    left_out = os.environ.get("TORCH") == "0" and collection_path.suffix == ".py"
    own = collection_path.parent.name == "torch"
    return True if left_out and (own or NEEDS_TORCH.search(collection_path.read_text())) else None
