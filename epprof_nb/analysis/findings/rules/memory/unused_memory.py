"""Findings on memory that libraries hold and cannot use: in pieces, or beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.device_memory import device_bytes, refused_calls
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.findings.finding import Finding, computed_later
from epprof_nb.analysis.memory.memory_peak import lifetimes
from epprof_nb.analysis.memory.memory_pools import pool_table
from epprof_nb.analysis.memory.memory_without_blocks import CONTEXT, UNNAMED
from epprof_nb.core.ort_binding import ONNX_RUNTIME
from epprof_nb.util.format import percent, plural, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_LEAST_SHARE = 0.1
"""Minimum share of a device's memory that is held and unused, unless the driver refused memory."""
_NO_LIBRARIES = ("driver", "host device", CONTEXT, UNNAMED)
"""Rows of `memory_pools` that do not belong to a library."""


class _Pieces(NamedTuple):
    """Free memory of a pool on a device at some time, and the largest request, in bytes."""

    pool: str
    device: int
    free: int
    largest: int
    request: int
    time: int


def fragmented_pools(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on each pool with enough free memory for a request, but no piece as large.

    The time is when the driver first refused memory, or else just before the pool last grew. The
    request is the largest one of the profile.
    """
    refused, total = index.cached(refused_calls), device_bytes(index)
    blocks, segments = (index.profile.tables[f"memory_{name}"] for name in ("blocks", "segments"))
    if not len(segments) or (total is None and not len(refused)):
        return
    calls = index.profile.tables["api_calls"]
    begin, _ = lifetimes(segments)
    pools = segments.names("pool")
    for code, name in enumerate(pools.categories):
        grew = begin[(pools.codes == code) & (begin > 0)]
        if name in _NO_LIBRARIES or name.startswith("torch graph") or not len(grew):
            continue  # what a graph's pool holds is for its replays
        time = int(calls["start_ns"][refused].min() if len(refused) else grew.max()) - 1
        requested = blocks["requested_bytes"][
            blocks.names("pool").equals(name) & (blocks["allocated_ns"] >= 0)
        ]
        request = int(requested.max(initial=0))
        table = pool_table(index, time)
        for device, free, largest in zip(
            *(table[column][table.names("pool").equals(name)].tolist()
              for column in ("device_id", "free_bytes", "largest_free_bytes")),
            strict=True,
        ):  # fmt: skip
            matters = len(refused) or free >= _LEAST_SHARE * (total or 0)
            if largest < request <= free and matters:
                yield _fragmentation(index, _Pieces(name, device, free, largest, request, time))


def _fragmentation(index: ProfileIndex, found: _Pieces) -> Finding:
    name, device, free, largest, request, time = found
    refused = len(index.cached(refused_calls))
    segments = index.profile.tables["memory_segments"]
    begin, end = lifetimes(segments)
    is_held = segments.names("pool").equals(name) & (segments["device_id"] == device)
    is_held &= (begin <= time) & (end > time)
    said = f"; the driver refused {plural(refused, 'allocation')}" if refused else ""
    is_torch = name.startswith("torch")
    return Finding(
        f"{_library(name)} held {size(free)} that its largest request, {size(request)}, could not "
        f"use: the largest free piece had {size(largest)}{said}.",
        0,
        time,
        time + 1,
        kind="fragmentation",
        remedy=(
            "Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` before the program starts, or "
            if is_torch
            else "Allocate the largest arrays first, or "
        )
        + "use few different sizes: pad batches to some lengths.",
        table="memory_segments",
        rows=lambda: np.flatnonzero(is_held),
    )


def unused_caches(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on memory that a library caches and another one cannot use."""
    total, refused = device_bytes(index), index.cached(refused_calls)
    table = pool_table(index)
    unused: dict[str, int] = {}
    held: dict[str, int] = {}
    for name, holds, used in zip(
        *map(table.values, ("pool", "held_bytes", "in_use_bytes")), strict=True
    ):
        if name not in _NO_LIBRARIES and holds:
            library = _library(name)
            held[library] = held.get(library, 0) + holds
            # A graph's pool is for its replays.
            is_cache = used is not None and not name.startswith("torch graph")
            unused[library] = unused.get(library, 0) + (holds - used if is_cache else 0)
    if len(held) < 2:
        return
    most = max(unused, key=lambda name: unused[name])
    matters = len(refused) or unused[most] >= _LEAST_SHARE * (total or np.inf)
    if not matters or not unused[most]:
        return
    others = " and ".join(f"{name} ({size(held[name])})" for name in held if name != most)
    share = f", {percent(unused[most] / total)} of the device," if total else ""
    free = {
        "PyTorch": "`torch.cuda.empty_cache()`",
        "CuPy": "`cupy.get_default_memory_pool().free_all_blocks()`",
    }.get(most)
    yield Finding(
        f"{most} caches {size(unused[most])}{share} that it does not use at the end and that "
        f"{others} cannot use.",
        0,
        0,
        wall_of(index.profile),
        kind="unused cache",
        remedy=(f"Release it once, with {free}, before the other library works, " if free else "")
        + ("or let" if free else "Let")
        + " both allocate from one pool (RMM), or bound each pool.",
        table="memory_segments",
        rows=computed_later(index, _segments_of, most),
    )


def _segments_of(index: ProfileIndex, library: str) -> IntArray:
    """Return the segments that a library holds at the end."""
    segments = index.profile.tables["memory_segments"]
    pools = segments.names("pool")
    of_library = np.array([*(_library(name) == library for name in pools.categories), False])
    return np.flatnonzero(of_library[pools.codes] & ~segments.has_value("freed_ns"))


def _library(pool: str) -> str:
    if pool.startswith("torch"):
        return "PyTorch"
    return ONNX_RUNTIME if pool.startswith(ONNX_RUNTIME) else pool  # the arena of each session
