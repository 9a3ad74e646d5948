"""Reasons why a table of a profile has no rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.data.ort_runs import is_run, reason_without_nodes
from epprof_nb.data.profiles_without_gpu import NO_GPU, has_no_gpu, is_cell_of_job
from epprof_nb.data.reason_without_phases import reason_without_phases
from epprof_nb.data.schema import DEVICE_KINDS

if TYPE_CHECKING:
    import pandas as pd

    from epprof_nb.data.profile_data import ProfileData

_NO_NODES = (
    "No node of an ONNX Runtime session was recorded. Create sessions after `%load_ext epprof_nb` "
    "or `epprof_nb.onnxruntime.install()`, and run them in the profile."
)
_NO_SAMPLES = (
    "The host was not sampled: it ran less than a few milliseconds between launches, or "
    "`samples=False` or `--no-samples` was given; `prof.info` says if it cannot be."
)
_NOTES = {
    "ops": "No statement, named operation or operation of a library ran.",
    "api_calls": "No call of CUDA was made.",
    "graphs": "No CUDA graph was launched.",
    "stacks": "No Python stack was recorded: nothing was launched from Python, or the profile is "
    "of a version or of another tool that records none.",
    "host_samples": _NO_SAMPLES,
    "thread_waits": "No Python thread waited for another one, or slept.",
    "by_function": _NO_SAMPLES,
    "by_line": "No statement was recorded. Cells with %%gpuprofile and scripts under `epprof run` "
    "record statements, unless --no-lines is given.",
    "by_stack": "Nothing was launched, and nothing waited for a device.",
    "by_repeat": "The code was not repeated: use `%%gpuprofile --repeat N`, or call "
    "`epprof_nb.step()` in a script.",
    "by_module": "No module of PyTorch was called, or PyTorch was not recorded (`frameworks=`).",
    "by_operator": "No operator of PyTorch was recorded: `--detail operators` records them.",
    "by_step": "No training step was recorded: the profile has no call of `step()` of a PyTorch "
    "optimizer, or of `epprof_nb.step()`.",
    "by_node": _NO_NODES,
    "by_op_type": _NO_NODES,
    "by_run": _NO_NODES,
    "insights": "Nothing was found that can save 2 % of the wall time.",
    "steadiness": "The profile has nothing to compare: no repeats (`--repeat N`), no steps "
    "(`epprof_nb.step()`), and no loop of ten iterations.",
    "sensitivity": "No experiment was made: `%%gpuprofile --experiment 40` and `epprof run "
    "--experiment 40` delay the named ops of the code.",
    "roofline": "No node of an ONNX Runtime session with known shapes and a known formula ran.",
}
_WITH_DEVICE_WORK = {
    "by_kernel": "There was device work, but no kernel.",
    "gaps": "No device was idle for as long as min_ns; `gaps(min_ns=0)` has all intervals.",
    "transfers": "There was device work, but no copy.",
    "waits": "The host did not wait for a device.",
}
"""Notes of tables on device work, if there was any."""
_WITH_NODES_ON_CPU = {
    "roofline": "The nodes ran on the CPU: `roofline()` compares the device work of nodes "
    "with the peaks of the device. `by_node()` has their host times.",
}
"""Notes of tables on the device work of nodes, if nodes ran without device work."""
_OF_DETAIL = {
    "memory": "No memory was allocated or released.",
    "overhead": "CUPTI reported no overhead.",
}
"""Notes of tables that are recorded with an option of the same name, if it was given."""
_OF_DETAIL |= dict.fromkeys(
    (
        "memory_blocks",
        "memory_segments",
        "memory_at",
        "memory_pools",
        "by_op_memory",
        "by_line_memory",
        "by_module_memory",
    ),
    "No memory of a device was in use, or no pool could be read: `prof.info` says why. Memory of "
    "the CPU is not recorded, not even of PyTorch's tensors there.",
)
_NOT_ALLOCATED = (
    "No memory of a device was allocated or released in this profile: `memory_at()` has what was "
    "in use."
)
_NOT_RECORDED = (
    'Records are missing, so the table would be incomplete: `prof.info["notes"]` says how many '
    "are missing, and how to record all of them."
)
_PLACEHOLDERS = {
    "by_module": "path", "by_node": "name", "by_op_type": "op_type", "by_operator": "name",
    "roofline": "name",
}  # fmt: skip
"""Tables whose only row can be the row of work without a node, module or operator."""


def explained(profile: ProfileData, table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table of a profile with the reason why it is empty, if it is.

    Parameters
    ----------
    profile
        The profile.
    table
        Name of the table in `epprof_nb.data.result_columns.TABLES`.
    frame
        The table.

    Returns
    -------
    frame
        `frame` if it has rows; else a `NotedFrame` with the same columns and dtypes, whose
        ``attrs["note"]`` is the reason. If the profile has no device work and the table has
        columns of it, a `HostFrame`, which does not show columns without values.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> synthetic_profile(activities=100).graphs.attrs["note"]
    'No CUDA graph was launched.'
    """
    if _is_empty(table, frame):
        is_unknown = _lacks_records(profile) and (table == "insights" or table not in _NOTES)
        return with_note(frame, _NOT_RECORDED if is_unknown else _reason(profile, table))
    if "device_ns" not in frame or _has_device_work(profile):
        return frame
    from epprof_nb.data.noted_frame import HostFrame

    return HostFrame(frame)


def with_note(frame: pd.DataFrame, note: str) -> pd.DataFrame:
    """Return a table with a note below its rows.

    Examples
    --------
    >>> import pandas as pd
    >>> with_note(pd.DataFrame({"name": ["a"]}), "One row only.").attrs["note"]
    'One row only.'
    """
    from epprof_nb.data.noted_frame import NOTE, NotedFrame

    noted = frame if isinstance(frame, NotedFrame) else NotedFrame(frame)
    noted.attrs[NOTE] = note
    return noted


def _is_empty(table: str, frame: pd.DataFrame) -> bool:
    if not len(frame):
        return True
    label = _PLACEHOLDERS.get(table)
    if label is None or len(frame) > 1:
        return False
    names = frame.index if frame.index.name == label else frame[label]
    return str(names.tolist()[0]).startswith("(")


def _reason(profile: ProfileData, table: str) -> str:
    if not any(map(len, profile.tables.values())):
        return "Nothing was recorded in this profile."
    if table in _OF_DETAIL:
        recorded = str(profile.info.get("detail") or "").split(",")
        detail = "overhead" if table == "overhead" else "memory"
        is_recorded = detail in recorded or "all" in recorded
        has_older = table.startswith("by_") and len(profile.tables["memory_blocks"]) > 0
        reason = _NOT_ALLOCATED if has_older else _OF_DETAIL[table]
        return reason if is_recorded else f"Not recorded: pass `--detail {detail}`."
    if table == "graphs" and "trace_format" in profile.info:
        return "The trace has no ids of CUDA graphs."
    has_device_work = _has_device_work(profile)
    if table in _WITH_NODES_ON_CPU and not has_device_work:
        if profile.tables["ops"].names("category").equals("node").any():
            return _WITH_NODES_ON_CPU[table]
    elif table in _WITH_DEVICE_WORK and has_device_work:
        return _WITH_DEVICE_WORK[table]
    return _note(profile, table) or _no_device_work(profile)


def _note(profile: ProfileData, table: str) -> str | None:
    if table == "by_phase":
        return reason_without_phases(profile)
    if table in ("by_node", "by_op_type") and (runs := int(is_run(profile.tables["ops"]).sum())):
        mode = (profile.info.get("recording") or {}).get("ort_nodes")
        return reason_without_nodes(runs, mode)
    return _NOTES.get(table)


def _lacks_records(profile: ProfileData) -> bool:
    recorded = profile.info.get("recorded")
    return isinstance(recorded, dict) and bool(recorded.get("lost") or recorded.get("dropped"))


def _has_device_work(profile: ProfileData) -> bool:
    kinds = profile.tables["activities"].names("kind")
    return any(bool(kinds.equals(kind).any()) for kind in DEVICE_KINDS)


def _no_device_work(profile: ProfileData) -> str:
    if "trace_format" in profile.info:
        return "The trace has no device work: its tool recorded none."
    if is_cell_of_job(profile.info):
        return (
            "This is the process of the cell, and it launched no device work: `job.by_rank()` has "
            "the work of the other processes."
        )
    if has_no_gpu(profile.info):
        return f"There was no device work, and the host device was not used. {NO_GPU}"
    return "There was no device work: no kernel, copy or memset was launched."
