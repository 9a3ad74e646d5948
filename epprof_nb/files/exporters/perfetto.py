"""Perfetto's own trace format, by the protobuf messages of the package ``perfetto``.

Unlike a Chrome trace, it has times in nanoseconds, typed arguments, counters with units, and groups
of tracks. https://ui.perfetto.dev opens the file without uploading it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from epprof_nb.analysis.base.devices import device_names
from epprof_nb.data.repeats import repeat_bounds, repeat_names
from epprof_nb.files.exporters.activity_tracks import DEVICES, ActivityTracks
from epprof_nb.files.exporters.device_counters import device_counters
from epprof_nb.files.exporters.perfetto_packets import Trace, trace_builder
from epprof_nb.files.exporters.perfetto_slices import ActivitySlices, Flows, HostSlices
from epprof_nb.files.exporters.thread_tracks import is_shown, thread_tracks
from epprof_nb.files.exporters.trace_file import trace_file
from epprof_nb.files.exporters.trace_processes import placed_profiles

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.files.exporters.device_counters import Counter
    from epprof_nb.files.exporters.trace_processes import TraceProcess


def to_perfetto(profile: ProfileData, path: str | os.PathLike[str]) -> None:
    """Write a profile in Perfetto's trace format, atomically and without building it in memory.

    Parameters
    ----------
    profile
        The profile. Ops with a ``count`` over 1 and suspended ops do not nest as slices must, so
        they have separate tracks.
    path
        The file; an existing file is replaced. It is compressed with gzip, which Perfetto reads, if
        its name ends in ``.gz``. Times are nanoseconds since the profile's start, or since its
        earliest event if that is before.

    Raises
    ------
    ImportError
        If the package ``perfetto`` is not installed.
    OSError
        If the file cannot be written.
    """
    builder = trace_builder()
    tables = profile.tables
    events = 2 * sum(len(tables[name]) for name in ("ops", "api_calls", "activities"))
    with (
        trace_file(path, events, " events") as (stream, bar),
        Trace(stream, builder, _origin(profile)) as trace,
    ):
        for written in _write(profile, trace):
            bar.update(written)


def job_to_perfetto(processes: Sequence[TraceProcess], path: str | os.PathLike[str]) -> None:
    """Write a job in Perfetto's trace format, with one process per process of the job.

    Parameters
    ----------
    processes
        The processes; their profiles are loaded one after another, twice.
    path
        The file, as for `to_perfetto`. Times are nanoseconds on the job's clock, or since its
        earliest event if that is before.

    Raises
    ------
    ImportError
        If the package ``perfetto`` is not installed.
    OSError
        If the file cannot be written.
    """
    builder = trace_builder()
    origin = min((_origin(profile) for *_, profile in placed_profiles(processes)), default=0)
    with (
        trace_file(path, len(processes), " processes") as (stream, bar),
        Trace(stream, builder, origin) as trace,
    ):
        first_flow = 1
        for rank, (process, pid, profile) in enumerate(placed_profiles(processes)):
            parent = trace.track(process.name, rank=rank, pid=pid)
            for _ in _write(profile, trace, parent, first_flow):
                pass
            first_flow += len(profile.tables["activities"])
            bar.update()


def _origin(profile: ProfileData) -> int:
    """Return the time that becomes 0 in the trace, because its times cannot be negative."""
    ops = profile.tables["ops"]
    starts = [ops["start_ns"][is_shown(ops)], repeat_bounds(profile.info)[0]]
    starts += [profile.tables[name]["start_ns"] for name in ("activities", "api_calls")]
    return min(int(values.min(initial=0)) for values in starts)


def _write(
    profile: ProfileData, trace: Trace, parent: int = 0, first_flow: int = 1
) -> Iterator[int]:
    """Write everything, and yield the numbers of events that were written."""
    host = trace.track("host", parent)
    _write_repeats(profile, trace, host)
    flows = Flows(profile, trace, first_flow)
    of_host = HostSlices(profile, trace, flows)
    for rank, track in enumerate(thread_tracks(profile), 1):
        yield from of_host.write(track, trace.track(track.name, host, rank))
    tracks = ActivityTracks(profile)
    names = device_names(profile.info)
    counters: dict[int, list[Counter]] = defaultdict(list)
    for counter in device_counters(profile):
        counters[counter.device_id].append(counter)
    activities = ActivitySlices(profile, tracks, trace, flows)
    of_process: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for (process, thread), label in tracks.labels.items():
        of_process[process].append((thread, label))
    # A device number may be too large for a rank in Perfetto's format.
    for rank, process in enumerate(sorted(of_process), 1):
        device_id = process - DEVICES
        name = f"device {device_id}: {names.get(device_id, 'unknown')}"
        device = trace.track(name, parent, rank=rank)
        for counter in counters[device_id]:
            uuid = trace.track(counter.name, device, unit=counter.unit)
            for time, value in zip(counter.times.tolist(), counter.values.tolist(), strict=True):
                trace.counter(uuid, time, value)
        for thread, label in of_process[process]:
            yield from activities.write(process, thread, trace.track(label, device, thread))


def _write_repeats(profile: ProfileData, trace: Trace, host: int) -> None:
    starts, ends = repeat_bounds(profile.info)
    if not len(starts):
        return
    word, first = repeat_names(profile.info)
    track = trace.track(f"{word}s", host)
    bounds = zip(starts.tolist(), ends.tolist(), strict=True)
    for number, (start, end) in enumerate(bounds, first):
        trace.begin(track, start, f"{word} {number}", word)
        trace.end(track, end)
