"""Reasons why a profile has no phases of language models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.data import ort_runs
from epprof_nb.data.recorded_frameworks import records_framework

if TYPE_CHECKING:
    from epprof_nb.data.profile_data import ProfileData

_MARK = 'mark its calls: `with epprof_nb.phase("decode", 1):`.'


def reason_without_phases(profile: ProfileData) -> str:
    """Return why no call of a language model is known in a profile, and what to do.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> reason_without_phases(synthetic_profile(activities=100))[:50]
    'No language model with a KV cache was called: neit'
    """
    return f"No language model with a KV cache was called: {_reason(profile)}"


def _reason(profile: ProfileData) -> str:
    ops, info = profile.tables["ops"], profile.info
    if "trace_format" in info:
        return "the trace has no lengths of inputs."
    if "source" in (info.get("redacted") or ()) and not (ops.names("args").codes >= 0).any():
        return "this copy of the profile is redacted and has no arguments of calls."
    if not records_framework(info, "torch"):
        return f"modules of PyTorch were not recorded (`frameworks=`). If there are none, {_MARK}"
    is_module = ops.names("op_type").equals("module") & ops.names("category").equals("framework")
    if is_module.any():
        return (
            "no module got tokens and a cache as arguments, such as `input_ids` and "
            "`past_key_values`. If a model keeps its cache in itself, is compiled or captured with "
            f"the loop around it, or its `forward` is called directly, {_MARK}"
        )
    if ort_runs.is_run(ops).any():
        return (
            "no session has inputs such as `input_ids` and `past_key_values.0.key`. If a model "
            f"names them differently, {_MARK}"
        )
    return (
        "neither a module of PyTorch nor a session of ONNX Runtime with tokens and a cache. If a "
        f"model is of another kind, or compiled with the loop around it, {_MARK}"
    )
