"""Findings that count the same idle time: joined where one explains it, else with a reference."""

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

_SYMPTOMS = ("outliers",)
"""Kinds without a remedy of their own where another finding names the cause."""
_RANKS = {
    "wait": 1, "pageable copies": 1, "idle": 2, "launch-bound": 2, "held work": 2, "outliers": 3,
}  # fmt: skip
"""Kinds that may be symptoms of those with a lower number; kinds that are not listed have 0."""
_EXPLAINED = 0.5
"""Two findings are on the same idle time if the cause explains this part of the other's gain."""
_SHARED = 0.5
"""A finding refers to another one that has at least this part of its idle time."""


def with_causes(found: Sequence[Finding]) -> list[Finding]:
    """Join findings on the same idle time: one with the cause, and the remedies of all.

    A finding explains as much of its idle time as it saves. Idle time after waits for the device,
    during an ONNX Runtime node on the CPU or in the garbage collector belongs to the cause. Its
    finding then has the remedy for idle time, too, with its gain. Outlying iterations that are slow
    while a device is idle have no remedy of their own and are left out.

    Returns
    -------
    findings
        In the order of `found`.
    """
    spans = [_spans(finding) for finding in found]
    lengths = [max(_length(of_finding), 1) for of_finding in spans]
    by_cause: dict[int, list[int]] = {}
    for number, finding in enumerate(found):
        parts = [
            (min(cause.gain_ns / lengths[at], 1.0) * _common(spans[at], spans[number]), at)
            for at, cause in enumerate(found)
            if _RANKS.get(cause.kind, 0) < _RANKS.get(finding.kind, 0)
        ]
        explained = sum(part for part, _ in parts)
        if explained and explained >= _EXPLAINED * finding.gain_ns:
            by_cause.setdefault(max(parts)[1], []).append(number)
    joined = {number for numbers in by_cause.values() for number in numbers}
    return [
        _with_remedies(finding, [found[at] for at in _all_of(by_cause, number)])
        for number, finding in enumerate(found)
        if number not in joined
    ]


def _all_of(by_cause: dict[int, list[int]], number: int) -> list[int]:
    """Return the findings that one explains, and those that they explain."""
    direct = by_cause.get(number, [])
    return [*direct, *(below for at in direct for below in _all_of(by_cause, at))]


def _with_remedies(finding: Finding, others: Sequence[Finding]) -> Finding:
    """Add the remedies of findings on the same time, with their gains, the largest ones first."""
    told = {finding.remedy}
    sentences = []
    for other in sorted(others, key=lambda found: -found.gain_ns):
        # Beside a remedy for the cause, less work that shortens the idle time is not a remedy.
        is_remedy = other.kind not in _SYMPTOMS and (other.kind != "idle" or other.low_ns)
        if is_remedy and other.remedy not in told:
            told.add(other.remedy)
            sentences.append(f"Or: {other.advice[:1].lower()}{other.advice[1:]}")
    return replace(finding, other_remedy=" ".join(sentences)) if sentences else finding


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
