"""Traces of other tools, distinguished by their content."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.files.impossible_numbers import with_plausible_numbers
from epprof_nb.files.readers import chrome_trace, kineto, onnxruntime_json
from epprof_nb.files.readers.byte_stream import ByteStream
from epprof_nb.files.readers.json_events import JsonEvents
from epprof_nb.files.readers.rows import Budget, Skipped
from epprof_nb.files.readers.xla_devices import XlaTracks

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from epprof_nb.data.table import Table

_LATE = (
    "The trace names its devices after their slices, so these slices are ops. It was read from a "
    "pipe; read it from a file to get its device work."
)


def read_trace(path: str | os.PathLike[str], *, max_bytes: int = 16 * 2**30) -> ProfileData:
    """Read a trace; see `epprof_nb.read_trace`."""
    tracks = XlaTracks()
    with Path(path).open("rb") as file:
        try:
            with _without_gc():
                stream, skipped = ByteStream(file), Skipped()
                profile = _read(stream, tracks, Budget(max_bytes), skipped)
                if tracks.are_late and file.seekable():
                    del profile
                    file.seek(0)
                    stream, skipped = ByteStream(file), Skipped()
                    profile = _read(stream, tracks, Budget(max_bytes), skipped)
                elif tracks.are_late:
                    profile.info["notes"].append(_LATE)
            _check_content(stream, profile)
            profile = _plausible(profile)
        except ProfileFileError as error:
            raise ProfileFileError(f"{path} could not be read: {error}") from error
    notes = [*profile.info.get("notes", ()), *skipped.notes()]
    if stream.damage:
        notes.append(f"The end of the trace is missing: {stream.damage}.")
    activities = profile.tables["activities"]
    attribution = activities.names("attribution")
    info = {
        "format": 1,
        "wall_ns": _length(profile.tables),
        **profile.info,
        "attribution": {
            how: int(attribution.equals(how).sum()) for how in ("stack", "cell", "none")
        },
        "notes": notes,
    }
    if not any(map(len, profile.tables.values())):
        info["skipped_events"] = skipped.events
    return ProfileData(profile.tables, info, profile.sources)


@contextmanager
def _without_gc() -> Iterator[None]:
    """Pause the search for reference cycles: millions of parsed events have none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(stream: ByteStream, tracks: XlaTracks, budget: Budget, skipped: Skipped) -> ProfileData:
    pieces = iter(stream)
    first = next(pieces, b"")
    while first and len(first) < 1_000 and (more := next(pieces, b"")):
        first += more
    everything = chain([first], pieces)
    if onnxruntime_json.is_onnxruntime(first):
        lines = onnxruntime_json.OnnxRuntimeEvents(everything)
        profile = onnxruntime_json.read(lines, budget, skipped)
        skipped.add("that are invalid JSON", lines.invalid)
        complete, name = lines.complete, "ONNX Runtime"
    else:
        events = JsonEvents(everything)
        if chrome_trace.is_own(events.head):
            profile, name = chrome_trace.read_own(events, budget, skipped), "epprof_nb"
        elif kineto.is_kineto(events.head):
            profile, name = kineto.read(events, budget, skipped), "Kineto"
        else:
            profile, name = chrome_trace.read(events, tracks, budget, skipped), "Chrome trace"
        skipped.add("that are invalid JSON objects", events.invalid)
        skipped.add("larger than 64 MiB", events.oversized)
        complete = events.complete
    profile.info["trace_format"] = name
    if not complete and not stream.damage:
        stream.damage = "the file is cut off before the end of its events"
    return profile


def _check_content(stream: ByteStream, profile: ProfileData) -> None:
    if stream.damage and not any(map(len, profile.tables.values())):
        raise ProfileFileError(
            f"{stream.damage}, and it has no complete event. Copy it again from its source."
        )


def _plausible(profile: ProfileData) -> ProfileData:
    try:
        return with_plausible_numbers(profile)
    except ValueError as error:
        raise ProfileFileError(f"{error}: it is damaged.") from error


def _length(tables: dict[str, Table]) -> int:
    ends = [int(np.max(t["end_ns"])) for t in tables.values()
            if len(t) and "end_ns" in t.schema.names]  # fmt: skip
    return max([*ends, 0])
