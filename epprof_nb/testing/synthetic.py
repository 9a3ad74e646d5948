"""Synthetic profiles, generated without recording anything."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from epprof_nb.core.version import package_version
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, API_CALLS, MISSING, OPS
from epprof_nb.data.table import Table, concat
from epprof_nb.profiles import Profile
from epprof_nb.testing.training_loop import SOURCE, Step

_Int = npt.NDArray[np.int64]

_CELL = "In[3]"
_MAIN_THREAD = 41_200
_FIRST_CORRELATION = 1_001
_FIRST_STEP_OP = 6
_CALL_NS, _LATENCY_NS, _SETUP_NS, _PRINT_NS = 4_000, 2_500, 60_000_000, 300_000

_CALLS = {
    "memcpy HtoD": "cuMemcpyHtoDAsync_v2",
    "memcpy DtoH": "cuMemcpyDtoHAsync_v2",
    "memset": "cuMemsetD8Async",
    "context_synchronize": "cuCtxSynchronize",
}
_READ = {"memcpy HtoD": "pinned", "memcpy DtoH": "device"}
_WRITTEN = {"memcpy HtoD": "device", "memcpy DtoH": "pageable", "memset": "device"}


def synthetic_profile(
    activities: int = 1_000_000, seed: int = 0, streams: int = 4, threads: int = 2
) -> Profile:
    """Generate the profile of a training loop.

    Parameters
    ----------
    activities
        Number of activities, each with an API call. There is about one op per seven activities.
    seed
        Seed of the durations and pauses. The same arguments give the same profile.
    streams
        Number of streams, at least 1.
    threads
        Number of launching threads, at least 1: the main thread and workers that launch the
        backward pass, whose activities are attributed to the statement of the cell.

    Returns
    -------
    profile
        A profile with nested statements and ranges, kernels, copies, memsets and
        synchronizations, and idle gaps of milliseconds. Activities of a stream do not overlap. A
        few activities have no op.

    Raises
    ------
    ValueError
        If an argument is too small.
    """
    if activities < 0 or streams < 1 or threads < 1:
        raise ValueError(
            "activities must be at least 0, streams and threads at least 1, not "
            f"{activities}, {streams} and {threads}"
        )
    step = Step(streams)
    steps = -(-activities // len(step.launches))
    clock = _Clock(step, steps, np.random.default_rng(seed))
    rows = _Rows(step, steps, activities, threads)
    device, calls = _activities(step, clock, rows), _api_calls(step, clock, rows)
    return Profile(
        {"ops": _ops(step, clock), "activities": device, "api_calls": calls},
        _info(clock.wall_ns, device),
        {_CELL: SOURCE},
    )


class _Clock:
    """Times of all activities in nanoseconds; arrays of shape ``(steps, launches per step)``."""

    def __init__(self, step: Step, steps: int, rng: np.random.Generator) -> None:
        width = len(step.launches)
        stream = step.column("stream")
        jitter = rng.random((steps, width), np.float32)
        duration = (step.column("duration_ns") * (0.85 + 0.3 * jitter)).astype(np.int64)
        # A call takes 4 us. The gap between two calls is at least as long, so that ops fit in.
        pitch = 2 * _CALL_NS + (2_000 * rng.random((steps, width), np.float32)).astype(np.int64)
        pause = np.where(rng.random(steps) < 0.03, rng.integers(2_000_000, 8_000_000, steps), 9_000)
        call = pause[:, None] + np.cumsum(pitch, axis=1)
        end = call + _CALL_NS
        for number in np.unique(stream[stream != MISSING]):
            on_stream = np.flatnonzero(stream == number)
            done = np.cumsum(duration[:, on_stream], axis=1)
            # An activity starts when it has been launched and the previous one has ended.
            ready = call[:, on_stream] + _LATENCY_NS - (done - duration[:, on_stream])
            end[:, on_stream] = done + np.maximum.accumulate(ready, axis=1)
        # The last activity of a step is a synchronization with everything before it.
        duration[:, -1] = np.maximum(end.max(axis=1), call[:, -1] + _CALL_NS) - call[:, -1]
        end[:, -1] = call[:, -1] + duration[:, -1]
        length = end[:, -1] + 2 * _CALL_NS
        self.step_start = _SETUP_NS + np.cumsum(length) - length
        origin = self.step_start[:, None]
        self.loop_end = _SETUP_NS + int(length.sum()) + _CALL_NS
        self.wall_ns = self.loop_end + _PRINT_NS
        self.duration, self.end = duration, end + origin
        self.start = self.end - duration
        self.call_start = call + origin
        self.call_end = self.call_start + _CALL_NS
        self.call_end[:, -1] = self.end[:, -1] + 1_000


class _Rows:
    """Op, thread, attribution and correlation id of each activity and its API call."""

    def __init__(self, step: Step, steps: int, count: int, threads: int) -> None:
        self.count, self.steps = count, steps
        worker = step.column("worker") * (threads > 1)
        thread = _MAIN_THREAD + worker * (1 + np.arange(len(worker)) % max(threads - 1, 1))
        ops = _FIRST_STEP_OP + np.arange(steps)[:, None] * len(step.ops) + step.column("op")
        self.op_id = ops.reshape(-1)[:count]
        self.thread_id = self.tile(thread)
        self.attribution = self.tile(worker.astype(np.int32))
        # A few activities are launched by a thread without an op.
        stray = np.arange(1_999, count, 2_003)
        stray = stray[self.tile(step.column("stream"))[stray] != MISSING]
        self.op_id[stray] = MISSING
        self.thread_id[stray] = _MAIN_THREAD + threads
        self.attribution[stray] = 2
        self.correlation_id = _FIRST_CORRELATION + np.arange(count)

    def tile(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Repeat an array with one value per launch for every step."""
        return np.tile(values, self.steps)[: self.count]

    def names(self, names: CategoryColumn) -> CategoryColumn:
        """Repeat names, one per launch, for every step."""
        return CategoryColumn(self.tile(names.codes), names.categories)

    def cut(self, values: _Int) -> _Int:
        """Flatten an array of shape ``(steps, launches)`` to one value per activity."""
        return values.reshape(-1)[: self.count]


def _activities(step: Step, clock: _Clock, rows: _Rows) -> Table:
    kind = step.names("kind")
    kernel = kind.equals("kernel")
    stream = step.column("stream")
    # CUPTI's stream ids, where 7 is the default stream.
    stream_id = np.select([stream == MISSING, stream == 0], [MISSING, 7], stream + 12)
    names = [launch["name"] for launch in step.launches]
    copies = CategoryColumn.of(
        [name.removeprefix("memcpy ") if name in _READ else None for name in names]
    )
    one = np.ones(len(names), np.int64)
    of_kernel = {
        name: rows.tile(np.where(kernel, values, MISSING))
        for name, values in {
            "grid_x": step.column("grid", 1),
            "grid_y": one,
            "grid_z": one,
            "block_x": step.column("block", 256),
            "block_y": one,
            "block_z": one,
            "registers_per_thread": 64 * one,
            "static_shared_bytes": 0 * one,
            "dynamic_shared_bytes": step.column("block", 256) * 64,
        }.items()
    }
    return Table(
        ACTIVITIES,
        {
            "kind": rows.names(kind),
            "name": rows.names(CategoryColumn.of(names)),
            "device_id": np.zeros(rows.count, np.int64),
            "context_id": np.ones(rows.count, np.int64),
            "stream_id": rows.tile(stream_id),
            "start_ns": rows.cut(clock.start),
            "end_ns": rows.cut(clock.end),
            "duration_ns": rows.cut(clock.duration),
            "correlation_id": rows.correlation_id,
            "op_id": rows.op_id,
            "attribution": CategoryColumn(rows.attribution, ("stack", "cell", "none")),
            "thread_id": rows.thread_id,
            "bytes": rows.tile(step.column("size", MISSING)),
            "copy_kind": rows.names(copies),
            "src_kind": rows.names(CategoryColumn.of([_READ.get(name) for name in names])),
            "dst_kind": rows.names(CategoryColumn.of([_WRITTEN.get(name) for name in names])),
            **of_kernel,
        },
    )


def _api_calls(step: Step, clock: _Clock, rows: _Rows) -> Table:
    start, end = rows.cut(clock.call_start), rows.cut(clock.call_end)
    calls = CategoryColumn.of(
        [_CALLS.get(launch["name"], "cuLaunchKernel") for launch in step.launches]
    )
    return Table(
        API_CALLS,
        {
            "domain": CategoryColumn.constant("driver", rows.count),
            "name": rows.names(calls),
            "thread_id": rows.thread_id,
            "start_ns": start,
            "end_ns": end,
            "duration_ns": end - start,
            "correlation_id": rows.correlation_id,
            # The op stack of a worker is empty. Only correlation finds the waiting statement.
            "op_id": np.where(rows.attribution == 0, rows.op_id, MISSING),
        },
    )


def _ops(step: Step, clock: _Clock) -> Table:
    """Build the ops: the cell, the statements outside the loop, and every step's statements."""
    steps, width = len(clock.step_start), len(step.ops)
    cell, loop, last = 1, _FIRST_STEP_OP - 1, _FIRST_STEP_OP + steps * width
    text = SOURCE.splitlines()
    times = [0, 100_000, 45_000_000, 59_000_000, 59_500_000, clock.loop_end]
    until = [clock.wall_ns, *times[2:5], clock.loop_end, clock.wall_ns - 1_000]
    outside = _op_table(
        np.array([cell, 2, 3, 4, loop, last]),
        np.array([MISSING, cell, cell, cell, cell, cell]),
        np.array([MISSING, 1, 2, 3, 4, len(text)]),
        texts=(CategoryColumn.of([_CELL, *text[:4], text[-1]]), CategoryColumn.of([None] * 6)),
        times=(np.array(times), np.array(until)),
    )
    ids = _FIRST_STEP_OP + np.arange(steps)[:, None] * width + np.arange(width)
    parent = np.array([op["parent"] for op in step.ops])
    # An op opens shortly before its first call, outer ops before inner ones.
    margin = np.array([1_500 - 300 * op["depth"] for op in step.ops])
    inside = _op_table(
        ids.reshape(-1),
        np.where(parent == MISSING, loop, ids[:, :1] + parent).reshape(-1),
        np.tile([op["line"] for op in step.ops], steps),
        texts=(
            _tile_names([op["name"] for op in step.ops], steps),
            _tile_names([op["args"] for op in step.ops], steps),
        ),
        times=(
            (clock.call_start[:, [op["first"] for op in step.ops]] - margin).reshape(-1),
            (clock.call_end[:, [op["last"] for op in step.ops]] + margin).reshape(-1),
        ),
    )
    return concat([outside.take(np.arange(5)), inside, outside.take(np.arange(5, 6))])


def _op_table(
    op_id: _Int,
    parent: _Int,
    line: _Int,
    *,
    texts: tuple[CategoryColumn, CategoryColumn],
    times: tuple[_Int, _Int],
) -> Table:
    """Build a table of ops from ``texts`` (names and arguments) and ``times`` (starts and ends)."""
    statement = line != MISSING
    # 0: the cell, 1: a statement, 2: a range.
    role = np.where(statement, 1, np.where(op_id == 1, 0, 2)).astype(np.int32)
    count = len(op_id)
    return Table(
        OPS,
        {
            "op_id": op_id,
            "parent_op_id": parent,
            "name": texts[0],
            "op_type": CategoryColumn(role, ("cell", "line", "range")),
            "category": CategoryColumn(
                np.where(role == 2, 1, 0).astype(np.int32), ("cell", "user")
            ),
            "source": CategoryColumn(np.where(role == 2, 1, 0).astype(np.int32), ("cell", "range")),
            "thread_id": np.full(count, _MAIN_THREAD),
            "start_ns": times[0],
            "end_ns": times[1],
            "duration_ns": times[1] - times[0],
            "count": np.ones(count, np.int64),
            "cell": CategoryColumn(np.where(statement, 0, MISSING).astype(np.int32), (_CELL,)),
            "line": line,
            "end_line": np.select([line == 4, line == 7], [12, 9], line),
            "status": CategoryColumn.constant("complete", count),
            "args": texts[1],
        },
    )


def _tile_names(names: list[str | None], times: int) -> CategoryColumn:
    encoded = CategoryColumn.of(names)
    return CategoryColumn(np.tile(encoded.codes, times), encoded.categories)


def _info(wall_ns: int, activities: Table) -> dict[str, Any]:
    """Build the info that a session would give to such a recording."""

    def counts(column: str, names: tuple[str, ...]) -> dict[str, int]:
        values = activities.names(column)
        return {name: int(np.count_nonzero(values.equals(name))) for name in names}

    kinds = counts("kind", ("kernel", "memcpy", "memset", "synchronization"))
    return {
        "format": 1,
        "wall_ns": wall_ns,
        "cell": _CELL,
        "devices": [{"device_id": 0, "name": "synthetic device", "kind": "gpu"}],
        "detail": "default",
        "recorded": {"launched": kinds, "shown": dict(kinds), "lost": {}},
        "attribution": counts("attribution", ("stack", "cell", "none")),
        "profiling_cost": {"ns": wall_ns // 25, "share": 0.04},
        "notes": ["This is a synthetic profile: nothing was recorded."],
        "error": None,
        "versions": {"epprof_nb": package_version(), "numpy": np.__version__},
    }
