"""The environment variable through which copies of NVTX in other libraries find this package."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "NVTX_INJECTION64_PATH"


def offer() -> None:
    """Set the variable, unless another tool has. An empty variable counts as unset.

    A library reads it once, at its first call of NVTX. Therefore importing the package calls this
    function, long before the first session.
    """
    from epprof_nb import _native

    if not os.environ.get(VARIABLE):
        os.environ[VARIABLE] = _native.__file__
    _native.nvtx_allow()


def withdraw() -> None:
    """Unset the variable, unless another tool has set it. Attached libraries stay attached."""
    if is_ours():
        del os.environ[VARIABLE]


def is_ours() -> bool:
    """Whether the variable names this package."""
    from epprof_nb import _native  # `epprof doctor` reports a native core that cannot be loaded

    return os.environ.get(VARIABLE) == _native.__file__


def missing_file() -> str | None:
    """Return the file that the variable names, if it does not exist.

    A name without a folder is not checked: the loader searches its own folders for it.
    """
    value = os.environ.get(VARIABLE, "")
    return value if "/" in value and not Path(value).exists() else None
