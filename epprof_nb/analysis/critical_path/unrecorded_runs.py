"""Time of nodes in runs of ONNX Runtime that were not recorded node by node.

In these runs, the time of the nodes belongs to the run, apart from that in which learned nodes
launch work. Recorded runs with inputs of the same shapes say which part of it a node takes. If the
run did not launch the same work as any recorded one, its kernels belong to the run, too. Then
kernels of the same name say which nodes they are of.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal
from weakref import proxy

import numpy as np

from epprof_nb.analysis.onnx.unprofiled_times import runs
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.columns import Rows
    from epprof_nb.arrays.types import IntArray

    Floats = npt.NDArray[np.float64]

Part = Literal["expected", "low", "high"]
BOUNDS: tuple[Part, Part] = ("low", "high")
_MAX_DIFFERENT = 100


class UnrecordedRuns:
    """Runs that were not recorded node by node, for `ProfileIndex.cached`.

    Attributes
    ----------
    rows
        Rows of the runs of which others of the session were recorded, and of the events around the
        nodes of learned ones.
    has_unknown
        Whether no run of some session was recorded.
    """

    def __init__(self, index: ProfileIndex) -> None:
        found = index.cached(runs)
        is_known = np.isin(found.session, found.session[found.is_recorded])
        self.has_unknown = not is_known.all()
        is_unrecorded = is_known & ~found.is_recorded
        self.rows: IntArray = np.empty(0, np.int64)
        self._runs = found
        self._index = proxy(index)  # which keeps this object
        if not is_unrecorded.any():
            return
        tables, parent = index.profile.tables, index.tree.parent
        ops, calls = tables["ops"], tables["api_calls"]
        inside = sum_by_group(parent, ops["duration_ns"], len(ops))[:-1]
        inside += sum_by_group(index.call_op, calls["end_ns"] - calls["start_ns"], len(ops))[:-1]
        self._own_ns = np.maximum(ops["duration_ns"] - inside, 0)
        number = np.full(len(ops) + 1, MISSING, np.int64)
        number[found.row] = np.arange(len(found.row))
        self._run = run = number[index.tree.nearest_ancestor(number[:-1] >= 0)]
        category = ops.names("category")
        is_event = category.equals("node") | category.equals("session")
        # Other ops, such as ranges in a kernel in Python, are recorded in all runs.
        self._run_of_op = np.where(is_event, run, MISSING)
        self._is_unrecorded = np.zeros(len(ops) + 1, np.bool_)
        self._is_unrecorded[found.row[is_unrecorded]] = True
        around = category.equals("session") & np.append(is_unrecorded, False)[run]
        self.rows = np.flatnonzero(around)
        self._rest_ns = np.maximum(self._by_run(np.where(around, self._own_ns, 0)), 1)
        self._run_ns = np.maximum(self._by_run(self._own_ns), 1)

    def _by_run(self, values: IntArray) -> Floats:
        return sum_by_group(self._run_of_op, values, len(self._runs.row))[:-1].astype(np.float64)

    def factors(self, of_ops: Floats, part: Part = "expected") -> Floats:
        """Return the factors of the host time of `rows` that follow from those of all ops."""
        found, of_runs = self._runs, of_ops[self._runs.row]
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = of_ops / np.append(of_runs, 1.0)[self._run_of_op]
        kept = np.where(np.isfinite(kept) & (self._run_of_op >= 0), kept, 1.0)
        changed = kept != 1
        taken = self._by_run(np.where(changed, self._own_ns, 0))
        removed = self._by_run(np.where(changed, self._own_ns * (1 - kept), 0).astype(np.int64))
        shares = np.zeros(len(found.row))
        for session in np.unique(found.session[taken > 0]).tolist():
            of_session = found.session == session
            recorded = of_session & found.is_recorded
            mean = removed[recorded].sum() / taken[recorded].sum()
            # Of runs with inputs of other shapes, the part is not known.
            part_of_all = taken[recorded].sum() / self._run_ns[recorded].sum()
            shares[of_session] = {"expected": part_of_all, "low": 0.0, "high": 1.0}[part] * mean
            for number in np.unique(found.inputs[recorded]).tolist():
                of_inputs = found.inputs == number
                some, others = (of_inputs & mask for mask in (recorded, ~found.is_recorded))
                if others.any():
                    times = taken[some], self._run_ns[some], self._run_ns[others]
                    shares[others] = _share(*times, part) * mean
        # Nodes that were learned have rows for the part of their time in which they launched.
        left_out = np.maximum(shares * self._run_ns - removed, 0) / self._rest_ns
        factors: Floats = np.maximum(of_runs * (1 - left_out), 0)[self._run_of_op[self.rows]]
        if len(np.unique(factors)) > _MAX_DIFFERENT:  # the core takes 254
            factors = np.round(factors, 2)
        return factors

    def device_factors(
        self, factors: Floats, of_runs: Floats, activity_op: Rows, part: Part = "expected"
    ) -> Floats:
        """Return the factors of activities, with those that follow for activities of `rows`.

        Parameters
        ----------
        factors
            One value per activity; those of `rows` have the factor of their run.
        of_runs
            Factor of the device work of each op.
        activity_op
            Row of the op of each activity.
        part
            What kernels take of a node; for a bound, those whose names have several nodes, or none.
        """
        rows = np.flatnonzero(self._is_unrecorded[activity_op])
        if not len(rows):
            return factors
        activities, found = self._index.profile.tables["activities"], self._runs
        run = np.append(self._run, MISSING)[activity_op]
        session = np.append(found.session, MISSING)[run]
        recorded = np.flatnonzero(np.append(found.is_recorded, False)[run])
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = factors[recorded] / of_runs[found.row[run[recorded]]]
        kept = np.where(np.isfinite(kept), kept, 1.0)
        weight = (activities["end_ns"] - activities["start_ns"])[recorded] + 1e-9
        result = factors.copy()
        names = activities.names("name").codes
        for keys in ((session,), (session, names)):  # of kernels of the same name, if there are any
            group, _ = group_codes(*(key[np.append(recorded, rows)] for key in keys))
            of_recorded, asked = np.split(group, [len(recorded)])
            count = int(group.max(initial=0)) + 1
            known = np.bincount(of_recorded, minlength=count) > 0
            if part == "expected":
                total = np.bincount(of_recorded, weight, count)
                value = np.bincount(of_recorded, kept * weight, count) / np.where(known, total, 1)
            else:
                value = np.full(count, -np.inf if part == "low" else np.inf)
                (np.maximum if part == "low" else np.minimum).at(value, of_recorded, kept)
            use = known[asked]
            result[rows[use]] = (factors[rows] * value[asked])[use]
        return result


def _share(taken: Floats, recorded_ns: Floats, others_ns: Floats, part: Part) -> float:
    """Return the part of other runs that nodes take, or a bound of it, 0 to 1.

    Recorded runs take longer, or scatter. What they take more may be of these nodes, or of others.
    """
    if part == "expected":
        return float(taken.sum() / recorded_ns.sum())
    usual, mean, count = float(others_ns.mean()), float(taken.mean()), len(taken)
    more = float(recorded_ns.mean()) - usual
    spread = 2 * float(np.std(taken, ddof=1)) / math.sqrt(count) if count > 1 else 0.0
    least, most = sorted((mean, mean - more))
    bound = least - spread if part == "low" else most + spread
    return min(max(bound / usual, 0.0), 1.0)
