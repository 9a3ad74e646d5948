"""Findings that count the same idle time: a cause is shown once, and others refer to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.intervals import covered_before, union

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.findings.finding import Finding
    from epprof_nb.arrays.types import IntArray

    Intervals = tuple[IntArray, IntArray]

_EXPLAINS = {
    "cpu fallback": ("idle", "wait", "outliers"),
    "wait": ("idle", "outliers"),
    "idle": ("outliers",),
    "data loader": ("outliers",),
    "driver allocation": ("idle", "outliers", "launch-bound"),
    "garbage collection": ("idle", "outliers"),
    "import": ("idle",),
}
"""Kinds of findings that name a cause, each with the kinds of its consequences."""
_EXPLAINED = 0.5
"""A finding is left out if findings on its cause have at least this part of its gain."""
_SHARED = 0.5
"""A finding refers to another one that has at least this part of its idle time."""


def without_consequences(found: Sequence[Finding], places: Sequence[int]) -> list[Finding]:
    """Leave out findings whose gain mostly belongs to findings on their cause.

    Idle time after waits for the device, or during an ONNX Runtime node on the CPU, has the same
    remedy as the waits or the node. The same applies to idle time at a place whose waits cost more.
    Outlying iterations that are slow while a device is idle share the remedy of this idle time.

    Parameters
    ----------
    found
        The findings.
    places
        Number of the place of each one.
    """
    spans = [_spans(finding) for finding in found]
    explained = [0.0] * len(found)
    for cause, place, of_cause in zip(found, places, spans, strict=True):
        kinds = _EXPLAINS.get(cause.kind, ())
        total = max(_length(of_cause), 1)
        for number, finding in enumerate(found):
            if finding.kind not in kinds:
                continue
            part = min(cause.gain_ns / total, 1.0) * _common(of_cause, spans[number])
            if cause.kind == "wait" and place == places[number]:
                part = cause.gain_ns
            explained[number] += part
    return [
        finding
        for finding, part in zip(found, explained, strict=True)
        if not part or part < _EXPLAINED * finding.gain_ns
    ]


def with_references(ranked: Sequence[Finding]) -> list[Finding]:
    """Add a reference to each finding that counts much of the idle time of an earlier one."""
    spans = [_spans(finding) for finding in ranked]
    result = []
    for number, finding in enumerate(ranked):
        length, text = _length(spans[number]), finding.text
        for earlier in range(number):
            shorter = min(length, _length(spans[earlier]))
            if shorter and _common(spans[earlier], spans[number]) >= _SHARED * shorter:
                text = f"{text} Finding {earlier + 1} counts this idle time, too."
                break
        result.append(finding if text == finding.text else replace(finding, text=text))
    return result


def _spans(finding: Finding) -> Intervals:
    return union(*finding.spans()) if finding.spans else (np.empty(0, np.int64),) * 2


def _length(intervals: Intervals) -> int:
    return int((intervals[1] - intervals[0]).sum())


def _common(one: Intervals, other: Intervals) -> int:
    """Return the length of the intersection, ns."""
    before, until = covered_before(*one, np.stack(other))
    return int((until - before).sum())
