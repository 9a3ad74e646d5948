"""What a profile says about itself: what was recorded, on what, and what was lost."""

from __future__ import annotations

import platform
import sys
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis import clock_check
from epprof_nb.arrays.ids import contains, unique_inverse
from epprof_nb.recorders.onnxruntime import info as ort_info

if TYPE_CHECKING:
    from epprof_nb.capture.correlate import Joined
    from epprof_nb.capture.service import Slice
    from epprof_nb.data.table import Table

# Activity kind -> what the names of the driver calls that launch it contain.
_LAUNCHES = {"kernel": "Launch", "memcpy": "Memcpy", "memset": "Memset"}


def describe(part: Slice, joined: Joined, epoch: tuple[int, int]) -> dict[str, Any]:
    """The part of `Profile.info` that comes from the recording.

    Parameters
    ----------
    part, joined
        The slice and its tables.
    epoch
        The monotonic and the epoch clock at one moment, nanoseconds.
    """
    activities, calls = joined.tables["activities"], joined.tables["api_calls"]
    monotonic, epoch_ns = epoch
    attribution = activities.names("attribution")
    recorded = _recorded(activities, calls, joined)
    plausible = clock_check.check(joined.tables["ops"], activities, calls)
    onnxruntime = ort_info.describe(joined.tables["ops"])
    return {
        "format": 1,
        "started_at_epoch_ns": epoch_ns + part.opened_ns - monotonic,
        "wall_ns": part.closed_ns - part.opened_ns,
        "code_ns": part.stopped_ns - part.opened_ns,
        "devices": _devices_used(part.devices, activities),
        "clock": {"source": "CLOCK_MONOTONIC", **part.clock},
        "recorded": recorded,
        "attribution": {
            how: int(attribution.equals(how).sum()) for how in ("stack", "cell", "none")
        },
        **onnxruntime,
        "plausibility": plausible,
        "notes": [
            *dict.fromkeys(part.notes),
            *_losses(recorded, joined),
            *clock_check.notes(plausible),
            *ort_info.notes(joined.tables["ops"], activities, onnxruntime),
        ],
        "versions": {**_versions(), **part.versions},
    }


def _devices_used(devices: list[dict[str, Any]], activities: Table) -> list[dict[str, Any]]:
    """The GPUs there are, and the host device where it was used or nothing else is there."""
    used = set(unique_inverse(activities["device_id"])[0].tolist())
    gpus = [d for d in devices if d["kind"] == "cuda"]
    return [d for d in devices if d["kind"] == "cuda" or d["device_id"] in used or not gpus]


def _recorded(activities: Table, calls: Table, joined: Joined) -> dict[str, Any]:
    """Work launched, shown and lost, by kind.

    A call that succeeded and was not captured launched at least one activity of its kind; a
    call without one lost it. Graph launches are left to ``dropped``: their number of nodes is not
    told by the call.
    """
    kinds = activities.names("kind")
    counts = {k: int(kinds.equals(k).sum()) for k in kinds.categories}
    shown = {kind: count for kind, count in counts.items() if count}
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
    for kind, part in _LAUNCHES.items():
        of_kind = np.array(
            [part in name and "Graph" not in name for name in names.categories] + [False]
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


@cache
def _numpy_version() -> str:
    return metadata.version("numpy")


def _versions() -> dict[str, str]:
    from epprof_nb.core.version import package_version

    versions = {
        "epprof_nb": package_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    for module, package in (("torch", "torch"), ("cupy", "cupy"), ("onnxruntime", "onnxruntime")):
        if module in sys.modules:
            versions[package] = str(getattr(sys.modules[module], "__version__", "?"))
    versions["numpy"] = _numpy_version()
    return versions
