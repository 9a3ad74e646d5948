"""Arguments of the ops that called a language model: how many tokens each call processed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.thread_ranges import first_in_ranges
from epprof_nb.arrays.types import MISSING
from epprof_nb.data import ort_runs
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.token_arguments import CALL_ARGUMENTS
from epprof_nb.recording import token_log

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.data.table import Table


def with_token_arguments(ops: Table) -> Table:
    """Add the lengths of query and KV cache to the args of the ops that called a language model.

    The op is the first ONNX Runtime run, or the first outermost call of a PyTorch module, that
    began during the call on its thread.

    Parameters
    ----------
    ops
        The ops of a recording, with times of CLOCK_MONOTONIC.
    """
    calls = token_log.calls()
    if not calls:
        return ops
    rows = np.flatnonzero(_may_be_model(ops))
    table = np.array(calls, np.int64)
    at = first_in_ranges(ops["thread_id"][rows], ops["start_ns"][rows], *table[:, :3].T)
    rows, at = rows[at != MISSING], at[at != MISSING]
    if not len(rows):
        return ops
    args = ops.names("args")
    texts = []
    for row, values in zip(rows.tolist(), table[at, 3:].tolist(), strict=True):
        code = int(args.codes[row])
        given = json.loads(args.categories[code]) if code >= 0 else {}
        lengths = dict(zip(CALL_ARGUMENTS, values, strict=True))
        texts.append(json.dumps(given | {name: n for name, n in lengths.items() if n >= 0}))
    return ops.replace(args=args.replaced(rows, CategoryColumn.of(texts)))


def _may_be_model(ops: Table) -> npt.NDArray[np.bool_]:
    op_type, category = ops.names("op_type"), ops.names("category")
    is_module = op_type.equals("module") & category.equals("framework")
    mask: npt.NDArray[np.bool_] = ort_runs.is_run(ops) | is_module
    return mask
