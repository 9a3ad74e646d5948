"""Runs of ONNX Runtime in a profile: how their nodes are known, and whose inputs are alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.op_status import ran
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING
from epprof_nb.data import ort_runs

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

RECORDED, LEARNED, MISMATCHED, NOT_RECORDED = (
    "recorded", "learned", "mismatched", "not recorded",
)  # fmt: skip
"""How the nodes of a run are known."""
CAPTURED = "captured"
"""How the nodes of a run that replays a graph are known: by the ops that captured the graph."""


def run_rows(ops: Table) -> IntArray:
    """Return the rows of the runs of the profile."""
    return np.flatnonzero(ort_runs.is_run(ops) & ran(ops))


def node_events(ops: Table, runs: IntArray) -> list[str | None]:
    """Return how the nodes of some runs are known; see `epprof_nb.Profile.by_run`.

    The value is None for a run that was still in progress at the end of the profile.
    """
    is_open = ops.names("status").equals("open")[runs].tolist()
    known = [of_run.get("nodes", RECORDED) for of_run in run_args(ops, runs)]
    return [
        None if open_run or nodes is None else str(nodes)
        for open_run, nodes in zip(is_open, known, strict=True)
    ]


def runs_by_session(ops: Table) -> list[dict[str, Any]]:
    """Return how the nodes of each session's runs are known.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.

    Returns
    -------
    sessions
        JSON-serialisable, one entry per session: ``session`` (its number), ``runs`` (in the
        profile), and the number of those ``recorded``, ``learned``, ``mismatched`` and
        ``not_recorded``.
    """
    rows = run_rows(ops)
    known = np.array(node_events(ops, rows), object)
    session = ops["session"][rows]
    return [
        {
            "session": number,
            "runs": int((session == number).sum()),
            **{
                state.replace(" ", "_"): int(((session == number) & (known == state)).sum())
                for state in (RECORDED, LEARNED, MISMATCHED, NOT_RECORDED)
            },
        }
        for number in np.unique(session[session != MISSING]).tolist()
    ]


def input_classes(ops: Table, runs: IntArray) -> tuple[IntArray, IntArray]:
    """Return two numbers that are equal for runs of a session with comparable inputs.

    For language models, they are the numbers of sequences and tokens, because the KV cache grows
    from call to call. For other models, they are a code of the input shapes.
    """
    args = run_args(ops, runs)
    one, other = (
        np.array([number_of(of_run.get(key)) for of_run in args], np.int64)
        for key in ("tokens", "batch")
    )
    shapes = np.array([number_of(of_run.get("shapes")) for of_run in args], np.int64)
    return np.where(one == MISSING, MISSING - shapes, one), other


def uncovered_inputs(ops: Table, session: int) -> tuple[int, int]:
    """Return how many classes of inputs have no recorded run of a session, and of how many.

    See `input_classes`.
    """
    rows = run_rows(ops)
    rows = rows[ops["session"][rows] == session]
    classes, _ = group_codes(*input_classes(ops, rows))
    is_recorded = np.array([state == RECORDED for state in node_events(ops, rows)], np.bool_)
    known, every = np.unique(classes[is_recorded]), np.unique(classes)
    return len(every) - len(known), len(every)


def run_args(ops: Table, runs: IntArray) -> list[dict[str, Any]]:
    """Return the arguments of some runs."""
    args = ops.names("args")
    parsed = (json.loads(args.categories[c]) if c >= 0 else {} for c in args.codes[runs].tolist())
    # A file may contain anything.
    return [of_run if isinstance(of_run, dict) else {} for of_run in parsed]


def number_of(value: object) -> int:
    """Return a positive number among the arguments of a run; `MISSING` if it is none."""
    return value if isinstance(value, int) and 0 < value < 2**62 else MISSING
