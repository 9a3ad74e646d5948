"""Layers of memory that have no blocks: pools of libraries, the context and the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.analysis.base.devices import host_ids
from epprof_nb.analysis.base.missing_records import lacks_records
from epprof_nb.analysis.memory.memory_peak import ALWAYS_BEFORE, lifetimes
from epprof_nb.analysis.onnx.fallback import has_accelerator, providers_of
from epprof_nb.core.ort_binding import ONNX_RUNTIME, PROVIDER
from epprof_nb.util.format import percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray
    from epprof_nb.data.table import Table

DRIVER, CONTEXT, UNNAMED, HOST_DEVICE = "driver", "context", "(unnamed)", "host device"

LOADED = "code and local memory"
"""Name of what the driver and CUPTI took for kernels in the profile, besides the context."""

BEFORE = "(before this profile)"
"""Name of what was there when the profile began."""

_AT_END = "at the end of the profile"


class Layer(NamedTuple):
    """Memory without blocks. Numbers are bytes at the end of the profile; None if unknown."""

    pool: str
    held: int | None
    note: str
    device_id: int | None = None
    in_use: int | None = None

    @property
    def free(self) -> int | None:
        """Bytes held and not in use."""
        known = self.held is not None and self.in_use is not None
        return self.held - self.in_use if known else None  # type: ignore[operator]


class WithinDriver(NamedTuple):
    """Allocations from the driver that are in the pools of libraries, in bytes."""

    nbytes: int
    note: str


def layers(index: ProfileIndex) -> list[Layer]:
    """Return the pools of libraries, the context, and the rest of the process's memory."""
    tables = index.profile.tables
    if not (len(tables["memory_segments"]) or len(tables["memory_blocks"]) or _memory(index)):
        return []  # memory was not recorded
    found = [*_libraries(index), *_unknown(index)]
    context = _memory(index).get("context_bytes")
    if context is not None:
        found.append(Layer(CONTEXT, int(context), "measured when CUDA had started"))
    whole = process_bytes(index)
    if whole is None:
        reason = "the memory of this process is unknown: NVML does not list it"
        return [*found, Layer(UNNAMED, None, reason)] if _memory(index) else found
    rest = whole - _held(index, found)
    before = max(0, min(rest, _unnamed_before(index)))
    if before:
        content = _note(found, f"{LOADED} of kernels, allocations of libraries")
        found.append(Layer(BEFORE, before, content))
    rest -= before
    if rest > 0 and _has_seen_all(index, found):
        name = LOADED
        if context is None and _memory(index)["process_before_bytes"] == 0:
            name = f"{CONTEXT}, {LOADED}"
        found.append(Layer(name, rest, "taken in this profile, and in none of its allocations"))
        rest = 0
    return [*found, _unnamed(whole, rest, found)]


def process_bytes(index: ProfileIndex) -> int | None:
    """Return the bytes that the process held on all GPUs at the end; None if nothing told them."""
    known = _memory(index).get("process_bytes")
    if known is not None:
        return int(known)
    after = (index.profile.info.get("gpu") or {}).get("after") or {}
    gpus = after.get("gpus") if isinstance(after, dict) else None
    found = [gpu.get("own_memory_bytes") for gpu in gpus or () if isinstance(gpu, dict)]
    numbers = [nbytes for nbytes in found if isinstance(nbytes, int)]
    return sum(numbers) if numbers else None


def within_driver(index: ProfileIndex, device_id: int) -> WithinDriver | None:
    """Return what the pools of libraries took from the driver of a device in the profile.

    This is how much they grew, and at most what was released of older memory, which they may have
    replaced. None if there are no such pools.
    """
    pools = [one for one in _pools(index) if one["device_id"] == device_id and one["held_bytes"]]
    if not pools:
        return None
    segments = index.profile.tables["memory_segments"]
    begin, end = lifetimes(segments)
    is_released = (begin == ALWAYS_BEFORE) & (end < np.iinfo(np.int64).max)
    is_released &= segments.names("pool").equals(DRIVER) & (segments["device_id"] == device_id)
    released = int(segments["bytes"][is_released].sum())
    growth = sum(one["held_bytes"] - one.get("held_before_bytes", 0) for one in pools)
    names = ", ".join(sorted({one["pool"] for one in pools}))
    return WithinDriver(max(0, growth + released), f"without what is in the pools of {names}")


def without_timeline(index: ProfileIndex) -> BoolArray:
    """Return the mask of the blocks that are sums of pools of which only the end is known."""
    names = {one["pool"] for one in _pools(index)}
    pools = index.profile.tables["memory_blocks"].names("pool")
    of_library = np.array([*(name in names for name in pools.categories), False], np.bool_)
    found: BoolArray = of_library[pools.codes]
    return found


def _memory(index: ProfileIndex) -> dict[str, Any]:
    return index.profile.info.get("memory") or {}


def _pools(index: ProfileIndex) -> list[dict[str, Any]]:
    return _memory(index).get("pools") or []


def _libraries(index: ProfileIndex) -> Iterator[Layer]:
    for one in _pools(index):
        note = one.get("note") or _AT_END
        yield Layer(one["pool"], one["held_bytes"], note, one["device_id"], one["in_use_bytes"])


def _unknown(index: ProfileIndex) -> Iterator[Layer]:
    """Yield the arenas of sessions of ONNX Runtime that had ended before they could be read."""
    info = index.profile.info
    names = info.get("onnxruntime_sessions") or {}
    known = {one["pool"] for one in _pools(index)}
    sessions = []
    for number in filter(str.isdecimal, info.get("onnxruntime_providers") or {}):
        name = str(names.get(number, number))
        others = [each for each in providers_of(info, int(number)) if each != PROVIDER]
        if has_accelerator(others) and not known & {ONNX_RUNTIME, f"{ONNX_RUNTIME} {name}"}:
            sessions.append(name)
    if sessions:
        note = "the arenas of sessions that had ended, or of other providers than NVIDIA's: "
        yield Layer(ONNX_RUNTIME, None, note + ", ".join(sessions))


def _held(index: ProfileIndex, found: list[Layer]) -> int:
    """Return the bytes of the pools and layers at the end."""
    segments = _on_gpu(index)
    at_end = segments.take(lifetimes(segments)[1] == np.iinfo(np.int64).max)
    held = int(at_end["bytes"].sum()) + sum(one.held or 0 for one in found)
    for device in np.unique(at_end["device_id"]).tolist():
        own = at_end.names("pool").equals(DRIVER) & (at_end["device_id"] == device)
        libraries = within_driver(index, device)
        held -= min(int(at_end["bytes"][own].sum()), libraries.nbytes if libraries else 0)
    return held


def _has_seen_all(index: ProfileIndex, found: list[Layer]) -> bool:
    """Return whether all allocations of the profile were recorded.

    What the process took besides is the driver's own: for its context, for code and its local
    memory, and for CUPTI.
    """
    has_begin = "process_before_bytes" in _memory(index)
    has_records = len(index.profile.tables["memory"]) > 0 and not index.cached(lacks_records)
    return has_begin and has_records and all(one.held is not None for one in found)


def _unnamed_before(index: ProfileIndex) -> int:
    """Return what the process held besides pools and context when the profile began.

    0 if that is unknown, or if the process used no GPU yet.
    """
    known = _memory(index)
    held = int(known.get("process_before_bytes", 0)) - int(known.get("context_bytes", 0))
    segments = _on_gpu(index)
    is_older = lifetimes(segments)[0] == ALWAYS_BEFORE
    held -= int(segments["bytes"][is_older].sum())
    return held - sum(int(one.get("held_before_bytes", 0)) for one in _pools(index))


def _on_gpu(index: ProfileIndex) -> Table:
    segments = index.profile.tables["memory_segments"]
    on_host = np.isin(segments["device_id"], [*host_ids(index.profile.info)])
    return segments.take(~on_host & ~segments.names("pool").equals(HOST_DEVICE))


def _note(found: list[Layer], content: str) -> str:
    if not any(one.pool == CONTEXT for one in found):
        content = f"context, {content}"
    return content


def _unnamed(whole: int, rest: int, found: list[Layer]) -> Layer:
    """Return the bytes of the process outside of pools, context and earlier memory."""
    if rest < 0:
        return Layer(UNNAMED, 0, f"the pools report {-rest:,} bytes more than NVML")
    content = "code and local memory of kernels, CUPTI, and allocations that it does not report"
    missing = [one.pool for one in found if one.held is None]
    if not any(one.pool == BEFORE or LOADED in one.pool for one in found):
        content = _note(found, content)
    if missing:
        content += f"; also {', '.join(missing)}"
    if whole:
        content = f"{percent(rest / whole)} of what the process holds: {content}"
    return Layer(UNNAMED, rest, content)
