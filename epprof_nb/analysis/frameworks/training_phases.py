"""Phases of training: which ops are the forward pass, the backward pass, the optimizer, or data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

FORWARD, BACKWARD, OPTIMIZER, DATA, OTHER = range(5)
PHASES = ("forward", "backward", "optimizer", "data", "other")
"""Names of the phases, by their code."""

_PHASE_OF_TYPE = {
    "module": FORWARD, "compiled": FORWARD, "fused": FORWARD,
    "recompute": BACKWARD, "backward": BACKWARD, "fused_backward": BACKWARD, "autograd": BACKWARD,
    "optimizer": OPTIMIZER, "data": DATA, "compile": OTHER,
}  # fmt: skip
FORWARD_TYPES = ("module", "compiled")
"""Op types of modules in the forward pass: calls, and their part of compiled code."""
MODULE_TYPES = (*FORWARD_TYPES, "recompute", "backward")
"""Op types of modules: in the forward pass, to recompute it, and their backward."""
FUSED_TYPES = ("fused", "fused_backward")
"""Op types of kernels of compiled code that belong to several modules."""


def is_framework_op(index: ProfileIndex) -> BoolArray:
    """Return a mask of the ops that a framework records by itself, without ranges of the user."""
    ops = index.profile.tables["ops"]
    return ops.names("category").equals("framework")


def is_of_type(index: ProfileIndex, *types: str) -> BoolArray:
    """Return a mask of the framework ops of some types."""
    op_type = index.profile.tables["ops"].names("op_type")
    of_category = np.append(np.isin(op_type.categories, types), np.False_)
    if not of_category.any():
        return np.zeros(len(op_type), np.bool_)
    return np.logical_and(is_framework_op(index), of_category[op_type.codes])


def phase_ops(index: ProfileIndex) -> IntArray:
    """Return the row of the framework op that decides the phase of each op; `MISSING` for none."""
    return index.tree.nearest_ancestor(is_of_type(index, *_PHASE_OF_TYPE))


def op_phases(index: ProfileIndex) -> npt.NDArray[np.uint8]:
    """Return the code of the phase of each op: of the nearest framework op above it."""
    names = index.profile.tables["ops"].names("op_type")
    codes = [_PHASE_OF_TYPE.get(name, OTHER) for name in names.categories]
    own = np.array([*codes, OTHER], np.uint8)[names.codes]
    # The last element is for ops without a framework op above them.
    return np.append(own, np.uint8(OTHER))[index.cached(phase_ops)]


def phase_starts(index: ProfileIndex) -> BoolArray:
    """Return a mask of the ops that begin a phase on the host, compilations inside of one too."""
    ops, tree = index.profile.tables["ops"], index.tree
    phases, deciding = index.cached(op_phases), index.cached(phase_ops)
    begins: BoolArray = deciding == np.arange(len(ops))
    above = np.append(phases, np.uint8(OTHER))[tree.parent]
    begins &= (phases != above) & has_host_time(ops)
    compilation = np.append(tree.nearest_ancestor(is_of_type(index, "compile")), MISSING)
    begins &= compilation[tree.parent] == MISSING
    return begins


def phase_host_ns(index: ProfileIndex) -> dict[int, IntArray]:
    """Return the host time of each op that begins a phase, by phase; 0 for ops inside of it.

    The phase around a compilation excludes it.
    """
    ops, tree = index.profile.tables["ops"], index.tree
    phases, begins = index.cached(op_phases), index.cached(phase_starts)
    compilations = np.flatnonzero(begins & (phases == OTHER))
    around = np.append(tree.nearest_ancestor(begins & (phases != OTHER)), MISSING)
    durations = np.append(np.where(begins, ops["duration_ns"], 0), 0)
    np.subtract.at(durations, around[tree.parent[compilations]], durations[compilations])
    return {phase: np.where(phases == phase, durations[:-1], 0) for phase in range(len(PHASES))}


def modules(index: ProfileIndex) -> IntArray:
    """Return the row of the module call, forward or backward, of each op; `MISSING` for none."""
    return index.tree.nearest_ancestor(is_of_type(index, *MODULE_TYPES))


def has_modules(index: ProfileIndex) -> bool:
    """Whether the profile has calls of modules."""
    return bool((index.cached(modules) != MISSING).any())
