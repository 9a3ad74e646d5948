"""Finding on optimizers of PyTorch that update one tensor after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL
from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.critical_path.changed_durations import Removed
from epprof_nb.analysis.critical_path.saving_without_work import saving_without
from epprof_nb.analysis.findings.finding import (
    Finding,
    capitalised,
    code,
    launcher_name,
    op_id_of,
    stack_of,
)
from epprof_nb.analysis.frameworks.training_phases import is_of_type
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

MIN_TENSORS = 10
"""Minimum number of times that each step launches one kernel after the other."""
_AT_ONCE = ("multi_tensor", "foreach", "fused")
"""Parts of the names of kernels that update many tensors at once."""
_FUSED = frozenset({"Adam", "AdamW", "SGD", "Adagrad"})
"""Classes of ``torch.optim`` with the option ``fused``."""
_PER_TENSOR = 0.5
"""Host time that remains for a tensor, in launches: the lists of tensors are still made."""
_LOW = 0.6
_DEVICE_BOUND = 0.2
"""Share of the host time below which devices are the limit, by what skipping that time saves."""
_TRAFFIC = 0.5
"""Share of the memory traffic that a kernel for a whole update saves, in place of three or more."""


class _Steps(NamedTuple):
    """The steps of one optimizer: rows of their ops, and of the kernels of each, by step."""

    name: str
    ops: IntArray
    kernels: IntArray
    tensors: int
    per_tensor: float


def per_tensor_optimizers(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on each optimizer whose steps launch kernels for each tensor alone."""
    ops = index.profile.tables["ops"]
    rows = np.flatnonzero(is_of_type(index, "optimizer") & has_host_time(ops))
    names = ops.names("name")
    is_step = np.array([name.endswith(".step") for name in names.categories] + [False])
    rows = rows[is_step[names.codes[rows]]]
    for number in np.unique(names.codes[rows]).tolist():
        of_name = rows[names.codes[rows] == number]
        found = _per_tensor(index, names.categories[number].removesuffix(".step"), of_name)
        if found is not None:
            yield _finding(index, found)


def _per_tensor(index: ProfileIndex, name: str, rows: IntArray) -> _Steps | None:
    """Return the steps of an optimizer; None if they update many tensors at once, or few."""
    is_step = np.zeros(len(index.tree), np.bool_)
    is_step[rows] = True
    of_kernel = np.append(index.tree.nearest_ancestor(is_step), MISSING)[index.activity_op]
    kernels = np.flatnonzero((of_kernel != MISSING) & (index.kinds == KERNEL))
    # A replay of a graph launches its kernels at once.
    in_graph = index.profile.tables["activities"]["graph_id"][kernels] != MISSING
    if not len(kernels) or 2 * in_graph.sum() > len(kernels):
        return None
    short = index.profile.tables["activities"].names("short_name")
    at_once = _at_once(short.categories)[short.codes[kernels]]
    if 2 * at_once.sum() > len(kernels):
        return None
    groups, first = group_codes(of_kernel[kernels], short.codes[kernels])
    counts = np.bincount(groups, minlength=len(first))
    step = of_kernel[kernels][first]
    # Each tensor needs the same kernels. Some are launched for a few tensors only, or once.
    tensors = [int(np.median(counts[(step == row) & (counts > 1)])) for row in np.unique(step)
               if ((step == row) & (counts > 1)).any()]  # fmt: skip
    typical = int(np.median(tensors)) if tensors else 0
    if typical < MIN_TENSORS:
        return None
    launches = len(kernels) / len(np.unique(step))
    return _Steps(name, rows, kernels, typical, launches / typical)


def _at_once(names: list[str] | tuple[str, ...]) -> BoolArray:
    found = [any(part in name.lower() for part in _AT_ONCE) for name in names]
    return np.array([*found, False], np.bool_)


def _finding(index: ProfileIndex, steps: _Steps) -> Finding:
    ops, activities = index.profile.tables["ops"], index.profile.tables["activities"]
    starts, ends = ops["start_ns"][steps.ops], ops["end_ns"][steps.ops]
    host_ns = int((ends - starts).sum())
    device_ns = int((activities["end_ns"] - activities["start_ns"])[steps.kernels].sum())
    remaining = min(_PER_TENSOR / steps.per_tensor, 1.0)
    skipped = starts + ((ends - starts) * remaining).astype(np.int64)
    removed = Removed(thread=ops["thread_id"][steps.ops], start=skipped, end=ends)
    gain = saving_without(index, removed)
    low = int(_LOW * gain)
    if gain < _DEVICE_BOUND * host_ns:
        less = int(_TRAFFIC * device_ns) if steps.per_tensor >= 3 else 0
        gain, low = max(gain, less), min(gain, less)
    first = int(steps.kernels[0])
    op, stack = int(steps.ops[0]), stack_of(index, "activities", first)
    line = int(index.statement[op])
    where = launcher_name(index, stack, line) if stack != MISSING or line >= 0 else ""
    longest = int((ends - starts).argmax())
    subject = capitalised(f"{where}: {code(steps.name)}" if where else code(steps.name))
    fused = "`fused=True` or " if steps.name in _FUSED else ""
    return Finding(
        f"{subject} updates one tensor after the other: "
        f"{plural(len(steps.kernels), 'launch', 'launches')} in "
        f"{plural(len(steps.ops), 'step')} for about {plural(steps.tensors, 'tensor')}, "
        f"{duration(host_ns)} on the host.",
        gain,
        int(starts[longest]),
        int(ends[longest]),
        kind="optimizer",
        remedy=f"Update all tensors at once: pass {fused}`foreach=True` to the optimizer.",
        gain_low_ns=low,
        op_id=op_id_of(index, op),
        stack_id=stack,
        rows=lambda: steps.kernels,
        spans=lambda: (skipped, ends),
    )
