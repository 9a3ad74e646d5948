"""The types of a profile's info, checked once when a file is loaded.

Views and analyses rely on them and need not handle a damaged info. Keys that are not listed may
hold anything that is not nested too deeply.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MAX_DEPTH = 32
_ANY = "*"
"""The key of a mapping's other entries."""
_OP_ID = re.compile("[0-9]{1,19}")


def is_text(value: object) -> bool:
    """Return whether a value is text that can be shown: UTF-8 has no lone surrogates."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def _optional_text(value: object) -> bool:
    return value is None or is_text(value)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and abs(value) < 2**63


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _integer(value: object) -> bool:
    return isinstance(value, int) and abs(value) < 2**63


def _count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 2**63


def _counts_of_ops(value: object) -> bool:
    """Return whether a value has counts by op, whose id is text."""
    return isinstance(value, dict) and all(
        _count(count) and _OP_ID.fullmatch(key) and int(key) < 2**63 for key, count in value.items()
    )


def _optional_count(value: object) -> bool:
    return value is None or _count(value)


def _time_ranges(value: object) -> bool:
    """Return whether a value lists time ranges, each a start and an end, in ascending order."""
    if not isinstance(value, list):
        return False
    times = []
    for bounds in value:
        match bounds:
            case [int(start), int(end)]:
                times += [start, end]
            case _:
                return False
    return times == sorted(times) and all(abs(time) < 2**62 for time in times)


def _anything(_: object) -> bool:
    return True


# A type is a predicate, a mapping of types by key, or a list with the type of all items.
_COUNTS = {_ANY: _count}
_MAPPING = {_ANY: _anything}
_TYPES: dict[str, Any] = {
    "format": _integer,
    "started_at_epoch_ns": _integer,
    "wall_ns": _count,
    "code_ns": _count,
    "cell": _optional_text,
    "script": _optional_text,
    "detail": _optional_text,
    "thread_id": _integer,
    "machine": _optional_text,
    "recording": {
        "detail": is_text,
        "frameworks": [is_text],
        "ort_nodes": is_text,
        "stacks": _flag,
        "samples": _flag,
        "waits": _flag,
    },
    "recording_costs": _COUNTS,
    "statement_costs": _counts_of_ops,
    "added_ns": {
        "total": _count,
        "error": _count,
        "estimated": _flag,
        "parts": _COUNTS,
        "of_threads": _COUNTS,
        "reason": is_text,
    },
    "stacks": _COUNTS,
    "no_stacks": _optional_text,
    "samples": _COUNTS,
    "no_samples": _optional_text,
    "error": _optional_text,
    "device_error": _optional_text,
    "repeats": _time_ranges,
    "repeat_waits_ns": [_count],
    "first_step": _count,
    "alternated": {"recording": is_text, "side": _count},
    "experiment": {
        "asked": _count,
        "base_ns": [_count],
        "rounds": [
            {
                "factors": [[is_text]],
                "levels": [[_integer]],
                "delay_ns": [[_count]],
                "wall_ns": [_count],
                "waited_ns": [_count],
            }
        ],
        "uncovered": {_ANY: is_text},
        "refused": is_text,
        "plan": is_text,
        "steps": _count,
        "runs": _count,
    },
    "no_gpu": {"is_first": _flag},
    "is_cell_of_job": _flag,
    "devices": [
        {
            "device_id": _integer,
            "name": _optional_text,
            "kind": _optional_text,
            "label": _optional_text,
            "begin_ns": _integer,
            "end_ns": _integer,
        }
    ],
    "threads": [{"thread_id": _integer, "name": _optional_text}],
    "processes": [{"name": is_text, "rows": {_ANY: [_count]}}],
    "recorded": {
        "launched": _COUNTS,
        "shown": _COUNTS,
        "lost": _COUNTS,
        "dropped": _count,
        "limit": _count,
        "ops_lost": _count,
        "statements_lost": _count,
        "calls_lost": _count,
    },
    "attribution": _COUNTS,
    "profiling_cost": {_ANY: _number},
    "notes": [is_text],
    "skipped_events": _count,
    "redacted": [is_text],
    "versions": {_ANY: is_text},
    "clock": _MAPPING,
    "gpu": _MAPPING,
    "memory": {
        "context_bytes": _count,
        "process_bytes": _count,
        "process_before_bytes": _count,
        "pools": [
            {
                "pool": is_text,
                "device_id": _count,
                "held_bytes": _optional_count,
                "in_use_bytes": _optional_count,
                "held_before_bytes": _count,
                "note": is_text,
            }
        ],
    },
    "load": _MAPPING,
    "plausibility": _MAPPING,
    "op_places": {_ANY: {"file": is_text, "line": _integer}},
    "class_places": {_ANY: {"file": is_text, "line": _integer}},
    "kernel_places": {_ANY: {"file": is_text, "line": _integer}},
    "onnxruntime_sessions": {_ANY: is_text},
    "onnxruntime_providers": {_ANY: [is_text]},
    "onnxruntime_selected": {_ANY: {_ANY: [is_text]}},
    "onnxruntime_stretch": [{_ANY: _number}],
    "onnxruntime_runs": [{_ANY: _count}],
}


def check_info(info: Mapping[str, Any]) -> None:
    """Check the types of the known entries of an info, and how deeply the others are nested.

    Raises
    ------
    ValueError
        If an entry is wrong; the message names it.
    """
    for key, value in info.items():
        _check(value, _TYPES.get(key, _anything), key, 1)


def _check(value: object, expected: Any, where: str, depth: int) -> None:  # noqa: ANN401
    if depth > _MAX_DEPTH:
        raise ValueError(f"{where} in the info is nested too deeply")
    matches: Callable[[object], bool]
    if isinstance(expected, dict):
        if not isinstance(value, dict):
            raise ValueError(f"{where} in the info is not a mapping")  # noqa: TRY004 - damage
        other = expected.get(_ANY, _anything)
        for key, item in value.items():
            _check(item, expected.get(key, other), f"{where}.{key[:100]}", depth + 1)
    elif isinstance(expected, list):
        if not isinstance(value, list):
            raise ValueError(f"{where} in the info is not a list")  # noqa: TRY004 - damage
        for i, item in enumerate(value):
            _check(item, expected[0], f"{where}[{i}]", depth + 1)
    else:
        matches = expected
        if not matches(value):
            raise ValueError(f"{where} in the info has the wrong type or is out of range")
        if isinstance(value, dict | list):
            _check(value, _MAPPING if isinstance(value, dict) else [_anything], where, depth)
