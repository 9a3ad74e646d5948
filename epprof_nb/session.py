"""A profiling session: a slice of the capture service, from its start to its Profile."""

from __future__ import annotations

import platform
import sys
import threading
from importlib import metadata
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from epprof_nb import _native, gpu_state, ops, ort_runs  # noqa: F401 - ops installs the suspender
from epprof_nb.capture import Consumer, Slice, service
from epprof_nb.clock import pair_with_epoch
from epprof_nb.correlate import Joined, join
from epprof_nb.id_lookup import contains
from epprof_nb.options import Options
from epprof_nb.profiles import Profile
from epprof_nb.schema import MISSING
from epprof_nb.table import Table, distinct

if TYPE_CHECKING:
    from types import TracebackType

    import numpy.typing as npt

_TIME_COLUMNS = ("start_ns", "end_ns", "time_ns")
_LAUNCHES = {"kernel": ("Launch",), "memcpy": ("Memcpy",), "memset": ("Memset",)}


class Session:
    """One profiled stretch. `start` makes one; `stop` gives its `Profile`.

    Parameters
    ----------
    options
        What to record.
    cell, source
        Name (as ``In[3]``) and source text of the profiled cell, if it is one.
    """

    def __init__(
        self, options: Options, *, cell: str | None = None, source: str | None = None
    ) -> None:
        self.options = options
        self._cell = cell
        self._sources = {} if cell is None or source is None else {cell: source}
        self._runs: list[tuple[int, int]] = []
        self._timer: threading.Timer | None = None
        self._sliced: Slice | None = None
        begun = _native.now_ns()
        self._gpu_before = gpu_state.snapshot()
        self._epoch = pair_with_epoch()
        self._consumer: Consumer = service.open(options)
        self._start_cost_ns = _native.now_ns() - begun
        if options.time_limit_s is not None:
            self._timer = threading.Timer(options.time_limit_s, self._cut_short)
            self._timer.daemon = True
            self._timer.start()

    def mark_run(self, index: int) -> None:
        """Say that repeat `index` of the profiled code begins now."""
        self._runs.append((_native.now_ns(), index))

    def _cut_short(self) -> None:
        self._sliced = service.close(self._consumer)

    def stop(self, *, error: str | None = None) -> Profile:
        """End the session and join what was recorded.

        Parameters
        ----------
        error
            Name of the exception the profiled code ended with, if it did.

        Raises
        ------
        CaptureError
            If it was stopped before, or begun in the parent of a forked process.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        stopped = _native.now_ns()
        part, self._sliced = self._sliced or service.close(self._consumer), None
        joined = join(part)
        joined_ns = _native.now_ns()
        info = self._info(part, joined)
        info["error"] = error
        if self.options.time_limit_s is not None and part.closed_ns < stopped:
            info["notes"].append(
                f"Recording stopped after {self.options.time_limit_s:g} s, as asked; the code "
                "went on unrecorded."
            )
        cost = self._start_cost_ns + joined_ns - part.closed_ns
        info["profiling_cost"] = {
            "ns": cost,
            "share": cost / max(1, info["wall_ns"]),
            "start_ns": self._start_cost_ns,
            "join_ns": joined_ns - part.closed_ns,
        }
        tables = {
            name: _rebased(table, part.opened_ns) for name, table in joined.tables.items()
        }
        if self._runs:
            tables["ops"] = self._with_runs(tables["ops"], part.opened_ns)
        return Profile(tables, info, self._sources)

    def abort(self) -> None:
        """End the session and throw away what it recorded."""
        if self._timer is not None:
            self._timer.cancel()
        service.abort(self._consumer)

    def _with_runs(self, ops: Table, origin: int) -> Table:
        starts = np.array([at - origin for at, _ in self._runs], np.int64)
        indices = np.array([index for _, index in self._runs], np.int64)
        at = np.searchsorted(starts, ops["start_ns"], side="right") - 1
        # An event of ONNX Runtime keeps the run of its session.
        of_repeat = (at >= 0) & ~ops.names("source").equals("onnxruntime")
        return ops.replace(run_id=np.where(of_repeat, indices[at], ops["run_id"]))

    def _info(self, part: Slice, joined: Joined) -> dict[str, Any]:
        activities, calls = joined.tables["activities"], joined.tables["api_calls"]
        monotonic, epoch = self._epoch
        notes = list(dict.fromkeys(part.notes))
        attribution = activities.names("attribution")
        info: dict[str, Any] = {
            "format": 1,
            "cell": self._cell,
            "started_at_epoch_ns": epoch + part.opened_ns - monotonic,
            "wall_ns": part.closed_ns - part.opened_ns,
            "code_ns": part.stopped_ns - part.opened_ns,
            "detail": self.options.detail,
            "devices": _devices_used(part.devices, activities),
            "clock": {"source": "CLOCK_MONOTONIC", **part.clock},
            "recorded": _recorded(activities, calls, joined),
            "attribution": {
                how: int(attribution.equals(how).sum()) for how in ("stack", "cell", "none")
            },
            "onnxruntime_sessions": ort_runs.session_names(
                n for n in np.unique(joined.tables["ops"]["session"]).tolist() if n != MISSING
            ),
            "notes": notes,
            "versions": {**_versions(), **part.versions},
            "gpu": {"before": self._gpu_before, "after": gpu_state.snapshot()},
        }
        notes += _losses(info["recorded"], joined)
        notes += _without_run(joined.tables["ops"])
        return info


def start(
    options: Options | None = None, *, cell: str | None = None, source: str | None = None
) -> Session:
    """Begin a session; see `Session`."""
    return Session(options or Options(), cell=cell, source=source)


class profile:  # noqa: N801 - used as a function, like contextlib's own
    """Profile the body of a ``with`` statement.

    Parameters
    ----------
    detail, max_records, time_limit_s
        See `epprof_nb.options.Options`.

    Yields
    ------
    Profile
        Empty until the body has ended; then it holds what the body did, also when it raised.

    Examples
    --------
    >>> import epprof_nb
    >>> with epprof_nb.profile() as prof:
    ...     with epprof_nb.op("work"):
    ...         pass
    >>> prof.ops["name"].tolist()
    ['work']
    """

    def __init__(
        self,
        *,
        detail: str = "default",
        max_records: int = 5_000_000,
        time_limit_s: float | None = None,
    ) -> None:
        self._options = Options(detail, max_records, time_limit_s)
        self._open: list[tuple[Session, Profile]] = []

    def __enter__(self) -> Profile:
        result = Profile()
        self._open.append((start(self._options), result))
        return result

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        session, result = self._open.pop()
        try:
            finished = session.stop(error=None if kind is None else kind.__name__)
        except BaseException:
            session.abort()
            raise
        result.tables, result.info = finished.tables, finished.info
        result.sources = finished.sources

    def __call__(self, *_: object) -> Self:
        raise TypeError(
            "profile() is a context manager: write `with epprof_nb.profile() as prof:`. To name "
            "a function as an op, decorate it with @epprof_nb.op(\"name\")."
        )


def _rebased(table: Table, origin: int) -> Table:
    times = {
        name: table[name] - origin for name in _TIME_COLUMNS if name in table.schema.names
    }
    return table.replace(**times) if times else table


def _devices_used(devices: list[dict[str, Any]], activities: Table) -> list[dict[str, Any]]:
    """The GPUs there are, and the host device where it was used or nothing else is there."""
    used = set(distinct(activities["device_id"])[0].tolist())
    gpus = [d for d in devices if d["kind"] == "cuda"]
    return [d for d in devices if d["kind"] == "cuda" or d["device_id"] in used or not gpus]


def _recorded(activities: Table, calls: Table, joined: Joined) -> dict[str, Any]:
    """Work launched, shown and lost, by kind.

    A call that succeeded and was not captured launched at least one activity of its kind; a
    call without one lost it. Graph launches are left to ``dropped``: their number of nodes is not
    told by the call.
    """
    kinds = activities.names("kind")
    shown = {k: int(kinds.equals(k).sum()) for k in kinds.categories}
    launched, lost = dict(shown), {}
    good = (calls["return_value"] == 0) & ~calls["captured"]
    # A runtime call, where recorded too, and its driver call are one launch.
    domain = calls.names("domain")
    good &= ~domain.equals("runtime")
    if not joined.activities_dropped:
        # The host device counts what it drops; a call without an activity is else a command that
        # was not run because one before it failed.
        good &= ~domain.equals("host")
    names = calls.names("name")
    for kind, parts in _LAUNCHES.items():
        of_kind = np.array(
            [any(p in name and "Graph" not in name for p in parts) for name in names.categories]
            + [False]
        )
        rows = good & of_kind[names.codes]
        correlations = calls["correlation_id"][rows]
        missing = ~contains(activities["correlation_id"], correlations)
        if missing.any():
            lost[kind] = int(missing.sum())
            launched[kind] = shown.get(kind, 0) + lost[kind]
    return {
        "launched": launched,
        "shown": shown,
        "lost": lost,
        "dropped": joined.activities_dropped,
        "ops_lost": joined.ops_lost,
        "calls_lost": joined.calls_lost,
    }


def _losses(recorded: dict[str, Any], joined: Joined) -> list[str]:
    notes = []
    if recorded["lost"]:
        what = ", ".join(f"{n:,} {kind}" for kind, n in recorded["lost"].items())
        notes.append(
            f"Records lost: {what}. Totals are too small by these. Profile less at once, or raise "
            "max_records."
        )
    if joined.ops_lost or joined.calls_lost:
        notes.append(
            f"{joined.ops_lost:,} ops and {joined.calls_lost:,} API calls found no room in the "
            f"logs; {joined.orphans:,} activities lost their op by it. Profile less at once."
        )
    return notes


def _without_run(ops: Table) -> list[str]:
    nodes = ops.names("category").equals("node") & (ops["run_id"] == MISSING)
    nodes &= ~ops.names("status").equals("earlier")
    if not nodes.any():
        return []
    return [
        f"{int(nodes.sum()):,} node events belong to no run for certain: their run began before "
        "this profile, or ran beside another one of a session that ONNX Runtime profiles as a "
        "whole (SessionOptions.enable_profiling). Leave that off to tell the runs apart."
    ]


def _versions() -> dict[str, str]:
    from epprof_nb import __version__

    versions = {
        "epprof_nb": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    for module, package in (("torch", "torch"), ("cupy", "cupy"), ("onnxruntime", "onnxruntime")):
        if module in sys.modules:
            versions[package] = str(getattr(sys.modules[module], "__version__", "?"))
    versions["numpy"] = metadata.version("numpy")
    return versions
