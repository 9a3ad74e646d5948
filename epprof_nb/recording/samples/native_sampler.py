"""Start, stop and results of the native core's thread that samples the host's Python code.

`native/samples/sampling_interval.h` has the intervals; `sampler.cpp` beside it chooses the threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recording.samples.availability import why_no_samples

if TYPE_CHECKING:
    from epprof_nb.core.options import Options

_runs = False
_refusal: str | None = None
"""Reason why the last start failed: a sandbox may forbid sampling after it allowed it."""


def start(options: Options) -> None:
    """Start the sampling if the options request it and the system allows it."""
    global _runs, _refusal  # noqa: PLW0603
    if options.samples and not _runs and why_no_samples() is None:
        _runs = True  # before the start, which Ctrl-C may follow
        _refusal = _native.start_samples()
        _runs = _refusal is None


def why_none() -> str | None:
    """Return why no samples are taken although the options request them."""
    return why_no_samples() or _refusal


def stop() -> None:
    """Stop, and forget the samples."""
    global _runs  # noqa: PLW0603
    if _runs:
        _native.stop_samples()
        _runs = False


def drain() -> dict[str, Any]:
    """Return the samples since the last call, see `_native.drain_samples`; empty if none are taken.

    Call it after the launches were drained, so that the stack of each is known.
    """
    return _native.drain_samples() if _runs else {}
