"""The native core's log of Python stacks, to which launches, ops and samples refer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recording.stacks.availability import why_unavailable

if TYPE_CHECKING:
    from epprof_nb.core.options import Options

_is_kept = False


def start(options: Options) -> None:
    """Start keeping stacks and reading the stacks of launches, if the options request it."""
    global _is_kept  # noqa: PLW0603
    if not (options.stacks or options.samples) or why_unavailable() is not None:
        return
    if not _is_kept:
        # Discard the stacks of the last recording.
        _native.drain_node_stacks()
        _native.drain_op_stacks()
        _native.begin_stacks()
        _is_kept = True
    if options.stacks:
        _native.resume_stacks()


def stop() -> None:
    """Stop, and forget the stacks."""
    global _is_kept  # noqa: PLW0603
    if _is_kept:
        _native.stop_stacks()
        _is_kept = False


def drain() -> dict[str, Any]:
    """Return the native columns of the new stacks; empty if no stacks are kept."""
    if not _is_kept:
        return {}
    return _native.drain_stacks() | _native.drain_node_stacks() | _native.drain_op_stacks()
