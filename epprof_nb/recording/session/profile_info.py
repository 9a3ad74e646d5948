"""`Profile.info`: what was recorded, on which devices, and which records were dropped."""

from __future__ import annotations

import platform
import sys
from contextlib import suppress
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.base.devices import is_gpu
from epprof_nb.analysis.base.missing_records import missing_launches
from epprof_nb.analysis.ranks.collective_kinds import CALL
from epprof_nb.arrays.ids import unique_inverse, unique_values
from epprof_nb.core.recording_costs import NAME_OF_KIND
from epprof_nb.recording.samples import native_sampler
from epprof_nb.recording.samples.host_samples import sample_counts
from epprof_nb.recording.session import clock_check
from epprof_nb.recording.session.graph_notes import notes_on_graphs
from epprof_nb.recording.session.interpreter_calls import ns_per_event
from epprof_nb.recording.stacks.availability import why_unavailable
from epprof_nb.util.machine_id import machine_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.data.python_stacks import PythonStacks
    from epprof_nb.data.table import Table
    from epprof_nb.recording.session.correlate import CorrelatedTables
    from epprof_nb.recording.session.recording import Recording

_UNSAID = [True]
"""Empty once a profile of this process has reported the missing GPU; taking from it is atomic."""

_MAX_OPS_WITH_COSTS = 4_000
"""Number of ops of which the info says what statements took: those at which they took most."""
_MANY_STATEMENTS = 1_000_000
"""Number of executions that take a notable time to record."""


def build_info(
    recording: Recording, correlated: CorrelatedTables, epoch: tuple[int, int]
) -> dict[str, Any]:
    """Build the part of `Profile.info` that describes the recording.

    Parameters
    ----------
    recording, correlated
        The recording and its tables.
    epoch
        The monotonic and the epoch clock at the same moment, in nanoseconds.
    """
    activities, calls = correlated.tables["activities"], correlated.tables["api_calls"]
    monotonic, epoch_ns = epoch
    attribution = activities.names("attribution")
    recorded = _recorded(correlated, recording.options.max_records)
    plausible = clock_check.check(correlated.tables["ops"], activities, calls)
    described = [r.describe(correlated.tables["ops"], activities) for r in recording.recorders]
    failure = _device_failure(recording)
    samples = _samples_of(recording)
    return {
        "format": 1,
        "started_at_epoch_ns": epoch_ns + recording.opened_ns - monotonic,
        "wall_ns": recording.closed_ns - recording.opened_ns,
        "code_ns": recording.stopped_ns - recording.opened_ns,
        "devices": _devices_used(recording.devices, activities),
        "threads": recording.thread_names.of(
            sorted(
                {
                    thread
                    for table, name in (
                        (correlated.tables["ops"], "thread_id"),
                        (calls, "thread_id"),
                        (correlated.tables["thread_waits"], "other_thread_id"),
                    )
                    for thread in unique_values(table[name])
                }
            )
        ),
        "clock": {"source": "CLOCK_MONOTONIC", **recording.clock},
        "recorded": recorded,
        "attribution": {
            how: int(attribution.equals(how).sum()) for how in ("stack", "cell", "learned", "none")
        },
        "device_error": failure[0] if failure else None,
        **_missing_gpu(recording.devices, activities),
        **_kernel_places(recording.kernel_places, activities),
        **{name: entry for entries, _ in described for name, entry in entries.items()},
        **_host_collectives(correlated.tables["ops"]),
        "recording": {
            "detail": recording.options.detail,
            "frameworks": list(recording.options.frameworks),
            **recording.settings,
            "stacks": recording.options.stacks and correlated.stacks is not None,
            "samples": samples is not None,
        },
        **_stack_facts(recording, correlated.stacks),
        **_sample_facts(recording, samples),
        "recording_costs": _costs(recording),
        "statement_costs": _statement_costs(recording),
        "plausibility": plausible,
        "notes": [
            *dict.fromkeys(recording.notes),
            *_notes_on_dropped(recorded, correlated, failure),
            *notes_on_statements(correlated.tables["ops"], correlated.statements_unmarked),
            *notes_on_graphs(activities),
            *_notes_on_stacks(correlated.stacks),
            *clock_check.notes(plausible),
            *(note for _, notes in described for note in notes),
        ],
        "versions": {**own_versions(), **recording.versions},
        "machine": machine_id(),
    }


def _host_collectives(ops: Table) -> dict[str, int]:
    """Return the number of calls that communicated on the host, if there were any."""
    count = int(ops.names("op_type").equals(CALL).sum())
    return {"host_collectives": count} if count else {}


def _costs(recording: Recording) -> dict[str, int]:
    """Return what recording took of the program's threads, ns, by what was recorded."""
    costs: dict[str, int] = {}
    for kind, of_batches in enumerate(zip(*(b.costs for b in recording.batches), strict=True)):
        timed, events = map(sum, zip(*of_batches, strict=True))
        if events:
            name = NAME_OF_KIND[kind]
            costs[name] = costs.get(name, 0) + timed + round(events * ns_per_event(kind))
    return costs


def _statement_costs(recording: Recording) -> dict[str, int]:
    """Return what statements took by op, ns, of the ops at which they took most."""
    costs: dict[int, float] = {}
    for batch in recording.batches:
        for op_id, kind, timed, events in batch.op_costs:
            costs[op_id] = costs.get(op_id, 0) + timed + events * ns_per_event(kind)
    most = sorted(costs, key=lambda op_id: -costs[op_id])[:_MAX_OPS_WITH_COSTS]
    return {str(op_id): round(costs[op_id]) for op_id in most}


def _stack_facts(recording: Recording, stacks: PythonStacks | None) -> dict[str, Any]:
    if stacks is None:
        return {"no_stacks": why_unavailable()} if recording.options.stacks else {}
    return {"stacks": {"truncated": stacks.truncated, "dropped": stacks.dropped}}


def _samples_of(recording: Recording) -> dict[str, int] | None:
    if not recording.options.samples:
        return None
    drained, before = (
        [batch.samples for batch in batches]
        for batches in (recording.batches, recording.previous_batches)
    )
    return sample_counts(drained, before)


def _sample_facts(recording: Recording, samples: dict[str, int] | None) -> dict[str, Any]:
    if samples is None:
        return {"no_samples": native_sampler.why_none()} if recording.options.samples else {}
    return {"samples": samples}


def _notes_on_stacks(stacks: PythonStacks | None) -> Iterator[str]:
    if stacks is None:
        return
    if stacks.dropped:
        yield (
            f"{stacks.dropped:,} launches and waits have no Python stack: their stacks would have "
            "exceeded the limit of 256 MiB. Profile fewer steps to see them."
        )
    if stacks.truncated:
        yield (
            f"{stacks.truncated:,} Python stacks were deeper than 1,024 frames. Their outermost "
            "frames are missing."
        )


def _devices_used(devices: list[dict[str, Any]], activities: Table) -> list[dict[str, Any]]:
    """Return all GPUs, and the host device if it was used or there is no GPU."""
    used = set(unique_inverse(activities["device_id"])[0].tolist())
    has_gpu = any(map(is_gpu, devices))
    return [d for d in devices if is_gpu(d) or d["device_id"] in used or not has_gpu]


def _missing_gpu(devices: list[dict[str, Any]], activities: Table) -> dict[str, Any]:
    """Return an entry if there is no GPU, and whether this profile is the first to say so."""
    if any(map(is_gpu, devices)):
        return {}
    is_first = False
    if not len(activities):  # work on the host device needs no explanation
        with suppress(IndexError):
            is_first = _UNSAID.pop()
    return {"no_gpu": {"is_first": is_first}}


def _kernel_places(
    places: dict[str, dict[str, Any]], activities: Table
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the places of the kernels in the profile."""
    used = {name: places[name] for name in activities.names("name").categories if name in places}
    return {"kernel_places": used} if used else {}


def _recorded(correlated: CorrelatedTables, limit: int) -> dict[str, Any]:
    """Count activities launched, shown and lost by kind.

    A successful call that was not captured launched at least one activity of its kind. If the
    activity is missing, its record is counted as lost. Graph launches are not counted here, because
    the call does not reveal the number of nodes; they are part of ``dropped``. The counts include
    the `limit` of records if the recording reached it.
    """
    activities, calls = correlated.tables["activities"], correlated.tables["api_calls"]
    kept = sum(len(correlated.tables[name]) for name in ("activities", "memory", "overhead"))
    is_full = correlated.activities_dropped > 0 and kept >= limit
    kinds = activities.names("kind")
    counts = {k: int(kinds.equals(k).sum()) for k in kinds.categories}
    shown = {kind: count for kind, count in counts.items() if count}
    launched, lost = dict(shown), {}
    missing = missing_launches(activities, calls, dropped=correlated.activities_dropped > 0)
    for kind, rows in missing.items():
        if len(rows):
            lost[kind] = len(rows)
            launched[kind] = shown.get(kind, 0) + lost[kind]
    return {
        "launched": launched,
        "shown": shown,
        "lost": lost,
        "dropped": correlated.activities_dropped,
        **({"limit": limit} if is_full else {}),
        "ops_lost": correlated.ops_dropped,
        "calls_lost": correlated.calls_dropped,
        "statements_lost": correlated.statements_unmarked,
    }


def _device_failure(recording: Recording) -> tuple[str, str] | None:
    """Return the name and description of the CUDA error that ended all device work, if any."""
    outputs = (output for batch in recording.batches for output in batch.outputs)
    return next((output.failure for output in outputs if output.failure), None)


def _note_on_failure(recorded: dict[str, Any], failure: tuple[str, str]) -> str:
    name, description = failure
    shown = ", ".join(f"{n:,} {kind}" for kind, n in recorded["shown"].items()) or "none"
    lost = ", ".join(f"{n:,} {kind}" for kind, n in recorded["lost"].items()) or "none"
    return (
        f"The GPU failed: {name} ({description}). CUDA does not work in this "
        "process any more: restart the Jupyter kernel to use the GPU. Activities recorded before "
        f"the failure: {shown}. Launched, but lost with the CUDA context: {lost}."
    )


def _note_on_missing(recorded: dict[str, Any], counts: str) -> str:
    launched = sum(recorded["launched"].values())
    kept = launched - sum(recorded["lost"].values())
    note = (
        f"Recorded {kept:,} of {launched:,} records (dropped: {counts}). Totals do not "
        "include the others. The device's work in that time is unknown, so it does not count as "
        "idle time, and findings ignore it."
    )
    return f"{note} {_remedy(recorded, kept)}"


def _note_on_memory(recorded: dict[str, Any]) -> str:
    return (
        f"{recorded['dropped']:,} records were dropped, which may be of allocations and releases "
        "of memory. From the last record on, the memory in use is only known at the end: what was "
        "allocated and released between is missing."
    )


def _remedy(recorded: dict[str, Any], kept: int) -> str:
    if "limit" not in recorded:
        return "Profile a smaller part of the code."
    enough = _rounded_up(kept + recorded["dropped"])
    return (
        f"The limit is {recorded['limit']:,} records: raise it (`%%gpuprofile --max-records "
        f"{enough}`, `epprof run --max-records {enough}`, `epprof_nb.profile(max_records={enough})`"
        "), or profile a smaller part of the code."
    )


def _rounded_up(count: int) -> int:
    """Round up to two significant digits."""
    step = int(10 ** max(len(str(count)) - 2, 0))
    return -(-count // step) * step


def _notes_on_dropped(
    recorded: dict[str, Any], correlated: CorrelatedTables, failure: tuple[str, str] | None
) -> list[str]:
    notes = []
    counts = ", ".join(f"{n:,} {kind}" for kind, n in recorded["lost"].items())
    if failure:
        notes.append(_note_on_failure(recorded, failure))
    elif counts:
        notes.append(_note_on_missing(recorded, counts))
    if recorded["dropped"] and not failure and len(correlated.tables["memory"]):
        note = _note_on_memory(recorded)
        kept = sum(len(correlated.tables[name]) for name in ("activities", "memory"))
        notes.append(note if counts else f"{note} {_remedy(recorded, kept)}")
    if correlated.ops_dropped or correlated.calls_dropped:
        notes.append(
            f"The logs are full: {correlated.ops_dropped:,} ops and "
            f"{correlated.calls_dropped:,} API calls were dropped, which leaves "
            f"{correlated.unresolved_ops:,} activities without an op. Profile a smaller part of "
            "the code."
        )
    return notes


def notes_on_statements(ops: Table, unmarked: int) -> list[str]:
    """Return notes on recording statements: if it took notable time, and if some were left out."""
    notes = []
    executions = int(ops["count"].sum(where=ops.names("op_type").equals("line")))
    if executions >= _MANY_STATEMENTS:
        notes.append(
            f"{executions:,} executions of statements were recorded, which slows short statements "
            "down; --no-lines avoids this overhead."
        )
    if unmarked:
        notes.append(
            f"{unmarked:,} executions of statements in recursive calls were not recorded, to keep "
            "the profiling overhead low. Counts of their lines lack them, and their time belongs "
            "to the statement around them."
        )
    return notes


@cache
def _numpy_version() -> str:
    return metadata.version("numpy")


def own_versions() -> dict[str, str]:
    """Return the versions of the package, of Python and of the libraries that are imported."""
    from epprof_nb.core.version import package_version

    versions = {
        "epprof_nb": package_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    for package in ("torch", "jax", "cupy", "onnxruntime"):
        if package in sys.modules:
            versions[package] = str(getattr(sys.modules[package], "__version__", "?"))
    versions["numpy"] = _numpy_version()
    return versions
