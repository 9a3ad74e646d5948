"""Calls of language models in a profile, and the generations and phases that they belong to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.analysis.base.op_status import ran
from epprof_nb.analysis.frameworks.phases import is_of_type
from epprof_nb.arrays.types import MISSING
from epprof_nb.data import ort_runs
from epprof_nb.data.token_arguments import CALL_ARGUMENTS

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

_Model = tuple[int, int]
PREFILL, DECODE = 0, 1
PHASES = ("prefill", "decode")
_MAX = 2**40
_MAX_DRAFT = 16
"""Maximum number of tokens of a decode step, which may verify the proposals of another model."""


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

    Generation libraries report which calls belong together. Otherwise a call continues a generation
    if the model's cache holds as many tokens as that generation has processed, in the same number
    of sequences; among several, the generation of the same thread. Calls belong to the prefill
    until one processes a single token. After that, a call that processes many tokens begins a new
    generation, such as the next turn of a chat.
    """
    ops = index.profile.tables["ops"]
    rows, arguments = _calls(index)
    order = np.argsort(ops["start_ns"][rows], kind="stable")
    rows, arguments = rows[order], arguments[order]
    threads = ops["thread_id"][rows].tolist()
    generation, phase = _generations(_models(index, rows), threads, arguments)
    batch, tokens, past, cache_bytes, _, _ = arguments.T
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
    mask: BoolArray = (ort_runs.is_run(ops) | is_of_type(index, "module")) & ran(ops)
    return mask


def _arguments(text: str) -> list[int] | None:
    """Return the arguments of a call; None if it does not call a model."""
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


def _models(index: ProfileIndex, rows: IntArray) -> list[_Model]:
    """Return the identity of each model: the session, or the name of the module."""
    ops = index.profile.tables["ops"]
    sessions, names = ops["session"][rows].tolist(), ops.names("name").codes[rows].tolist()
    return [
        (session, MISSING if session != MISSING else name)
        for session, name in zip(sessions, names, strict=True)
    ]


def _generations(
    models: list[_Model], threads: list[int], arguments: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the generation and the phase of each call."""
    generation = np.empty(len(models), np.int64)
    phase = np.empty(len(models), np.int64)
    known = _Known()
    for i, (model, thread, (batch, tokens, past, _, turn, decode)) in enumerate(
        zip(models, threads, arguments.tolist(), strict=True)
    ):
        if turn != MISSING:
            number = known.turns.setdefault((model, turn), len(known.decodes))
        else:
            number = known.continued(model, thread, batch, tokens, past)
        if number == len(known.decodes):
            known.decodes.append(past > 0 and tokens == 1)
        known.decodes[number] |= tokens == 1 and past > 0
        is_decode = known.decodes[number] if decode == MISSING else decode == 1
        generation[i] = number
        phase[i] = DECODE if is_decode else PREFILL
        if turn == MISSING:
            known.expected.setdefault((model, batch, past + tokens), []).append((thread, number))
    return generation, phase


class _Known:
    """The generations of the calls so far.

    Attributes
    ----------
    turns
        The generation of each model and turn.
    expected
        Thread and generation by model, batch and number of processed tokens, the latest last.
    decodes
        Whether each generation has a decode step.
    """

    def __init__(self) -> None:
        self.turns: dict[tuple[_Model, int], int] = {}
        self.expected: dict[tuple[_Model, int, int], list[tuple[int, int]]] = {}
        self.decodes: list[bool] = []

    def continued(self, model: _Model, thread: int, batch: int, tokens: int, past: int) -> int:
        """Return the generation that a call continues, or the number of a new one."""
        candidates = self.expected.get((model, batch, past)) if past else None
        if not candidates:
            return len(self.decodes)
        of_thread = [i for i, (other, _) in enumerate(candidates) if other == thread]
        _, number = candidates.pop(of_thread[-1] if of_thread else -1)
        is_turn = self.decodes[number] and tokens > _MAX_DRAFT
        return len(self.decodes) if is_turn else number
