"""Whether the Python stacks of launches can be read in this interpreter."""

from __future__ import annotations

import atexit
import sys
from functools import cache

from epprof_nb import _native
from epprof_nb.recording.stacks import self_test


@cache
def why_unavailable() -> str | None:
    """Return why stacks cannot be read here; None if they can.

    The first call compares stacks that the native core reads with those of Python, in about a
    millisecond.
    """
    reason = _unsupported() or _native.prepare_stacks(sys.version_info.minor)
    if reason is not None:
        return reason
    # The interpreter frees its thread states after this, also of threads in a launch.
    atexit.register(_native.end_stacks)
    differing = self_test.differing()
    if differing:
        return f"they differ from Python's in: {', '.join(differing)}"
    return None


def _unsupported() -> str | None:
    version = sys.version_info
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} stores its frames differently from CPython"
    if "t" in sys.abiflags:
        return "the interpreter is free-threaded"
    if hasattr(sys, "gettotalrefcount"):
        return "the interpreter is a debug build"
    if version.releaselevel != "final":
        return f"Python {sys.version.split()[0]} is not a final release"
    return None
