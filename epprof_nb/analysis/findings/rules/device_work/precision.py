"""Findings on kernels that compute more precisely than their result may need."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL, device_kinds_ns
from epprof_nb.analysis.base.devices import device_word
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.critical_path.changed_durations import Removed
from epprof_nb.analysis.critical_path.saving_without_work import saving_without
from epprof_nb.analysis.findings.finding import Finding, launcher_name, op_id_of, stack_of
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.util.format import duration, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

SHARE = 0.1
"""Minimum share of the device time of these kernels."""


class _Precision(NamedTuple):
    """Kernels of one precision by their short name, and what a lower one takes of their time."""

    pattern: str
    says: str
    remedy: str
    product: float
    """Part of the time of products and convolutions that remains, on tensor cores."""
    other: float
    """Part of the time of other kernels that remains: half of the memory traffic, or all."""
    least: float
    """Part of the time that remains at most."""


_PRODUCT = re.compile(r"gemm|gemv|prop|grad|conv|nvjet|matmul|\bdot", re.IGNORECASE)
_DOUBLE = _Precision(
    r"\[(?:.* )?(?:f64|c128)\b|[dz]gemm|d884gemm",
    "compute in double precision (float64)",
    "If float32 is precise enough, convert the data once, where it is made (`.float()`, "
    "`dtype=np.float32`): NumPy arrays are float64 by default. Results change.",
    0.25, 0.5, 0.65,
)  # fmt: skip
_SINGLE = _Precision(
    r"(?:gemm|prop|grad)\b.*\[f32\b|(?:simt|ampere|volta|turing)_sgemm",
    "are products in float32 without tensor cores",
    "If 10 bits of the mantissa are enough, use TF32 (`torch.set_float32_matmul_precision"
    '("high")`; for convolutions `torch.backends.cudnn.allow_tf32`), or bfloat16 by '
    "`torch.autocast`. Results change.",
    0.3, 1.0, 0.7,
)  # fmt: skip


def precise_kernels(index: ProfileIndex) -> Iterator[Finding]:
    """Yield findings on kernels in double precision, and on products in float32."""
    if device_word(index.profile.info) != "GPU":
        return
    for precision in (_DOUBLE, _SINGLE):
        names = index.profile.tables["activities"].names("short_name")
        is_precise = _matches(names.categories, precision.pattern)
        if precision is _SINGLE:
            is_precise &= _matches(names.categories, _PRODUCT.pattern)
        rows = np.flatnonzero(is_precise[names.codes] & (index.kinds == KERNEL))
        if len(rows):
            yield from _finding(index, precision, rows)


def _matches(names: list[str] | tuple[str, ...], pattern: str) -> BoolArray:
    search = re.compile(pattern, re.IGNORECASE).search
    return np.array([*(bool(search(name)) for name in names), False], np.bool_)


def _finding(index: ProfileIndex, precision: _Precision, rows: IntArray) -> Iterator[Finding]:
    activities, places = index.profile.tables["activities"], index.cached(Places)
    time = np.maximum(activities["end_ns"][rows] - activities["start_ns"][rows], 0)
    total, device_ns = int(time.sum()), device_kinds_ns(activities, index.kinds)
    if total < SHARE * device_ns:
        return
    names = activities.names("short_name")
    is_product = _matches(names.categories, _PRODUCT.pattern)[names.codes[rows]]
    remains = np.where(is_product, precision.product, precision.other)
    place = places.of_activities(rows)
    top = place == int(sum_by_group(place, time, places.count).argmax())
    longest = int(rows[top][int(time[top].argmax())])
    op, stack = int(index.activity_op[longest]), stack_of(index, "activities", longest)
    where = launcher_name(index, stack, op)
    yield Finding(
        f"Kernels with {percent(total / device_ns)} of the GPU time ({duration(total)}) "
        f"{precision.says}{f', most of them of {where}' if where else ''}.",
        _saving(index, rows, remains),
        int(activities["start_ns"][longest]),
        int(activities["end_ns"][longest]),
        kind="precision",
        remedy=precision.remedy,
        gain_low_ns=_saving(index, rows, np.maximum(remains, precision.least)),
        gain_high_ns=_saving(index, rows, remains / 4),
        op_id=op_id_of(index, op),
        stack_id=stack,
        rows=lambda: rows,
    )


def _saving(index: ProfileIndex, rows: IntArray, remains: npt.NDArray[np.float64]) -> int:
    return saving_without(index, Removed(activities=rows, remains=remains))
