"""Calls of language models in a profile, and the generations and phases that they belong to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.analysis.framework_phases import is_of_type
from epprof_nb.analysis.op_status import ran
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.token_arguments import CALL_ARGUMENTS

if TYPE_CHECKING:
    from epprof_nb.analysis.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

PREFILL, DECODE = 0, 1
PHASES = ("prefill", "decode")
_MAX = 2**62


class ModelSteps(NamedTuple):
    """Calls of language models, in the order of their start: columns with one value per call.

    ``row`` is the row of the op; ``batch``, ``tokens``, ``past`` and ``cache_bytes`` are its
    arguments (see `epprof_nb.data.token_arguments`), `MISSING` if unknown; ``generation`` numbers
    the generations from 0, and ``phase`` is `PREFILL` or `DECODE`.
    """

    row: IntArray
    batch: IntArray
    tokens: IntArray
    past: IntArray
    cache_bytes: IntArray
    generation: IntArray
    phase: IntArray


def model_steps(index: ProfileIndex) -> ModelSteps:
    """Return the calls of language models of a profile, for `ProfileIndex.cached`.

    A call continues a generation if the model's cache holds as many tokens as that generation has
    processed, in the same number of sequences. All calls that process several tokens before the
    first call that processes one are the prefill, of which there may be several (chunked prefill).
    """
    ops = index.profile.tables["ops"]
    rows, arguments = _calls(index)
    order = np.argsort(ops["start_ns"][rows], kind="stable")
    rows, arguments = rows[order], arguments[order]
    generation, phase = _generations(_models(index, rows), arguments)
    batch, tokens, past, cache_bytes = arguments.T
    return ModelSteps(rows, batch, tokens, past, cache_bytes, generation, phase)


def _calls(index: ProfileIndex) -> tuple[IntArray, IntArray]:
    """Return the rows of the calls and their arguments, shape ``(n, len(CALL_ARGUMENTS))``."""
    ops = index.profile.tables["ops"]
    args = ops.names("args")
    parsed = [_arguments(text) for text in args.categories]
    known = np.array([values is not None for values in parsed] + [False])
    rows = np.flatnonzero(known[args.codes] & _may_be_call(index))
    values = [parsed[code] for code in args.codes[rows].tolist()]
    return rows, np.array(values, np.int64).reshape(-1, len(CALL_ARGUMENTS))


def _may_be_call(index: ProfileIndex) -> BoolArray:
    ops = index.profile.tables["ops"]
    is_run = ops.names("category").equals("session") & ops.names("op_type").equals("run")
    mask: BoolArray = (is_run | is_of_type(index, "module")) & ran(ops)
    return mask


def _arguments(text: str) -> list[int] | None:
    """Return the arguments of a call; None if they are not those of a call of a model."""
    if '"tokens"' not in text:
        return None
    try:
        given: Any = json.loads(text)
    except ValueError:  # a file may contain anything
        return None
    if not isinstance(given, dict) or not all(_is_size(given.get(n)) for n in CALL_ARGUMENTS[1:3]):
        return None
    return [given[name] if _is_size(given.get(name)) else MISSING for name in CALL_ARGUMENTS]


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX


def _models(index: ProfileIndex, rows: IntArray) -> list[tuple[int, int]]:
    """Return what tells models apart: the session, or the name of the module."""
    ops = index.profile.tables["ops"]
    sessions, names = ops["session"][rows].tolist(), ops.names("name").codes[rows].tolist()
    return [
        (session, MISSING if session != MISSING else name)
        for session, name in zip(sessions, names, strict=True)
    ]


def _generations(models: list[tuple[int, int]], arguments: IntArray) -> tuple[IntArray, IntArray]:
    """Return the generation and the phase of each call."""
    generation = np.empty(len(models), np.int64)
    phase = np.empty(len(models), np.int64)
    # Model, batch and number of processed tokens of each generation that may go on.
    expected: dict[tuple[tuple[int, int], int, int], int] = {}
    decodes: list[bool] = []
    for i, (model, (batch, tokens, past, _)) in enumerate(
        zip(models, arguments.tolist(), strict=True)
    ):
        number = expected.pop((model, batch, past), None) if past else None
        if number is None:
            number = len(decodes)
            decodes.append(past > 0 and tokens == 1)
        elif tokens == 1:
            decodes[number] = True
        generation[i] = number
        phase[i] = DECODE if decodes[number] else PREFILL
        expected[model, batch, past + tokens] = number
    return generation, phase
