"""Kinds of activity records that CUPTI is asked to write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.recording.cupti import layouts

if TYPE_CHECKING:
    from epprof_nb.core.options import Options

# Graphs are recorded node by node. With GRAPH_TRACE enabled, CUPTI 13.0 crashes at the launch of a
# graph that was instantiated before.
_ALWAYS = ("CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET")
# From CUDA 12.9 on, SYNCHRONIZATION does not enable CUDA_EVENT. Its times on the device stay off.
_INSTEAD_OF_CALLBACKS = (
    "SYNCHRONIZATION",
    "CUDA_EVENT",
    "RUNTIME",
    "DRIVER",
    "EXTERNAL_CORRELATION",
)
_OF_DETAILS = {"memory": "MEMORY2", "overhead": "OVERHEAD"}


def enabled_kinds(options: Options, *, callbacks: bool) -> list[int]:
    """Return CUPTI's numbers of the kinds that `options` need, with or without its callbacks."""
    kinds = [*_ALWAYS, *(kind for detail, kind in _OF_DETAILS.items() if options.records(detail))]
    if not callbacks:
        kinds += _INSTEAD_OF_CALLBACKS
    return [kind_number(kind) for kind in kinds]


def kind_number(name: str) -> int:
    """Return the number of a kind of records, such as ``MEMCPY``."""
    return layouts.ENUMERATORS[f"CUPTI_ACTIVITY_KIND_{name}"]
