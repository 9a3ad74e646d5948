"""The version of the ``.epprof`` format, and the upgrade of what older minor versions stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.repeats import with_repeats

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

VERSION = (1, 11)
"""Major and minor version that this package writes.

A new column or table increments the minor version. A change that an older reader would misread
increments the major version.
"""


def upgrade(profile: ProfileData, version: tuple[int, int]) -> ProfileData:
    """Return a profile of format `version` as the current version would have stored it.

    Parameters
    ----------
    profile
        The profile as it was read; columns that the file lacks have missing values.
    version
        Major and minor version of the file.
    """
    if version < (1, 3):
        _rename_gpus(profile.info)
    if version < (1, 10) and "trace_format" in profile.info:
        profile = _without_made_up_zeros(profile)
    return _separate_repeats(profile) if version < (1, 1) else profile


def _rename_gpus(info: dict[str, Any]) -> None:
    """Rename the kind of GPUs, which was ``cuda`` before 1.3, to ``gpu``."""
    for device in info.get("devices") or ():
        if device.get("kind") == "cuda":
            device["kind"] = "gpu"


def _without_made_up_zeros(profile: ProfileData) -> ProfileData:
    """Mark columns that traces lack, and that were 0 before 1.10, as missing."""
    tables = dict(profile.tables)
    unknown = {"ops": "suspended_ns"}
    if profile.info["trace_format"] != "epprof_nb":
        unknown["api_calls"] = "return_value"
    for name, column in unknown.items():
        table = tables[name]
        tables[name] = table.replace(**{column: np.full(len(table), MISSING, np.int64)})
    return ProfileData(tables, profile.info, profile.sources)


def _separate_repeats(profile: ProfileData) -> ProfileData:
    """Move repeats from `run_id`, which 1.0 shared with ONNX Runtime's runs, to `repeat`.

    1.0 did not store the start of a repeat, so the start of its first op is used.
    """
    ops = profile.tables["ops"]
    is_repeat = ~ops.names("source").equals("onnxruntime") & (ops["run_id"] != MISSING)
    # Without repeats, only a run and the ops below it have a number.
    parent = IdIndex(ops["op_id"]).rows(ops["parent_op_id"])
    is_outermost = np.append(ops["run_id"], MISSING)[parent] == MISSING
    rows = np.flatnonzero(is_repeat)
    if not (is_repeat & is_outermost).any():
        return profile
    starts = _first_starts(ops, rows)
    end = profile.info.get("code_ns")
    latest = max(int(ops["end_ns"][rows].max()), int(starts[-1]))
    ends = np.append(starts[1:], end if isinstance(end, int) and end > starts[-1] else latest)
    info: dict[str, Any] = {**profile.info, "repeats": np.stack([starts, ends], axis=1).tolist()}
    tables = {
        **profile.tables,
        "ops": ops.replace(run_id=np.where(is_repeat, MISSING, ops["run_id"])),
    }
    return ProfileData(with_repeats(tables, info), info, profile.sources)


def _first_starts(ops: Table, rows: IntArray) -> IntArray:
    """Return when the first op of each repeat started, ascending."""
    repeats, position = np.unique(ops["run_id"][rows], return_inverse=True)
    starts = np.full(len(repeats), np.iinfo(np.int64).max)
    np.minimum.at(starts, position, ops["start_ns"][rows])
    return np.sort(starts)
