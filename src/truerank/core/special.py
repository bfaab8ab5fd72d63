"""Functions of distributions, such as `stdtr`: those of `scipy.special`, without what is loaded around them.

`scipy.special` wraps its compiled functions for other kinds of arrays, which takes longer to load than all of numpy and
scipy otherwise. The compiled module beneath it holds the very same functions, and is loaded alone where that can be
done unseen: no other thread is there to import `scipy.special` meanwhile. Everywhere else the package is.

>>> from truerank.core.special import stdtr
>>> round(float(stdtr(5.0, 2.0)), 4)  # Student's t with 5 degrees of freedom, below 2
0.949
"""

from __future__ import annotations

import importlib
import sys
import threading
from types import ModuleType
from typing import Any

PACKAGE, COMPILED = "scipy.special", "scipy.special._ufuncs"


def __getattr__(name: str) -> Any:
    if name.startswith("_"):  # asked of every module, by whatever looks at modules
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    functions = sys.modules.get(COMPILED) or _alone()
    result = getattr(functions if hasattr(functions, name) else importlib.import_module(PACKAGE), name)
    globals()[name] = result  # asked for once
    return result


def _alone() -> ModuleType | None:
    """The compiled functions without their package; none where something is in the way."""
    if PACKAGE in sys.modules or threading.active_count() > 1:
        return None
    import scipy

    package = ModuleType(PACKAGE)
    package.__path__ = [f"{path}/special" for path in scipy.__path__]
    sys.modules[PACKAGE] = package
    try:
        return importlib.import_module(COMPILED)
    except ImportError:  # of another version of scipy
        return None
    finally:
        del sys.modules[PACKAGE]  # who asks for it gets the real one
