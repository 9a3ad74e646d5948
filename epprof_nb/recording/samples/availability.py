"""Whether the host's Python code can be sampled in this process."""

from __future__ import annotations

import atexit
from functools import cache

from epprof_nb import _native
from epprof_nb.recording.stacks.availability import why_unavailable


@cache
def why_no_samples() -> str | None:
    """Return why the host cannot be sampled here; None if it can."""
    reason = why_unavailable() or _native.prepare_samples()
    if reason is None:
        # The interpreter frees its thread states after this.
        atexit.register(_native.end_samples)
    return reason
