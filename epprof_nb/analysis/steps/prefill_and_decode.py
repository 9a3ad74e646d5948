"""Calls of language models in a profile, and the generations and phases that they belong to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.analysis.base.op_status import ran
from epprof_nb.analysis.frameworks.training_phases import is_of_type
from epprof_nb.arrays.types import MISSING
from epprof_nb.data import ort_runs
from epprof_nb.data.cache_uses import MOST, AmbiguousCacheError, CacheUse, continued
from epprof_nb.data.token_arguments import CALL_ARGUMENTS, MAX_DRAFT, PHASES

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_Model = tuple[int, str]
"""Session and name."""
PREFILL, DECODE = 0, 1
_MAX = 2**40


class ModelSteps(NamedTuple):
    """Calls of language models, in the order of their start: columns with one value per call.

    ``row`` is the row of the op, and ``model`` the session, the path of the module or the name that
    the user has given; ``batch``, ``tokens``, ``past`` and ``cache_bytes`` are its arguments (see
    `epprof_nb.data.token_arguments`), `MISSING` if unknown; ``generation`` numbers the generations
    from 0, and ``phase`` is `PREFILL` or `DECODE`. ``left_out`` counts further calls, of which it
    is not known what they continue.
    """

    row: IntArray
    model: list[str]
    batch: IntArray
    tokens: IntArray
    past: IntArray
    cache_bytes: IntArray
    generation: IntArray
    phase: IntArray
    left_out: int


def model_steps(index: ProfileIndex) -> ModelSteps:
    """Return the calls of language models of a profile, for `ProfileIndex.cached`.

    Generation libraries and `epprof_nb.phase` say which phase a call belongs to. Otherwise calls
    with one KV cache belong together; of sessions, whose caches are not known, a call continues a
    generation if the cache holds as many tokens as that generation has processed, in the same
    number of sequences; among several, the generation of the same thread. Else the lengths decide
    as in `epprof_nb.data.cache_uses`. Calls belong to the
    prefill until one processes a single token, or proposals of which some are taken back. After
    that, a call that processes many tokens begins a new generation, such as the next turn of a
    chat.
    """
    ops = index.profile.tables["ops"]
    rows, arguments, models = _calls(index)
    order = np.argsort(ops["start_ns"][rows], kind="stable")
    rows, arguments = rows[order], arguments[order]
    models = [models[i] for i in order.tolist()]
    threads = ops["thread_id"][rows].tolist()
    keys = list(zip(ops["session"][rows].tolist(), models, strict=True))
    generation, phase, past = _generations(keys, threads, arguments)
    batch, tokens, _, cache_bytes, _, _ = arguments.T
    known = np.flatnonzero(generation != MISSING)
    return ModelSteps(
        rows[known],
        [models[i] for i in known.tolist()],
        batch[known],
        tokens[known],
        past[known],
        cache_bytes[known],
        generation[known],
        phase[known],
        len(rows) - len(known),
    )


def _calls(index: ProfileIndex) -> tuple[IntArray, IntArray, list[str]]:
    """Return the rows of the calls, their arguments, one row per call, and names of the models."""
    ops, info = index.profile.tables["ops"], index.profile.info
    args = ops.names("args")
    parsed = [_arguments(text) for text in args.categories]
    is_call = np.array([call is not None for call in parsed] + [False])[args.codes]
    is_marked = is_call & ops.names("category").equals("user")
    is_marked &= np.array([bool(call and call.model) for call in parsed] + [False])[args.codes]
    is_found = is_call & (ort_runs.is_run(ops) | is_of_type(index, "module"))
    # Calls in a marked one are part of it.
    inside = index.tree.nearest_ancestor(is_marked)
    rows = np.flatnonzero((is_marked | is_found & (inside == MISSING)) & ran(ops))
    calls = [call for code in args.codes[rows].tolist() if (call := parsed[code]) is not None]
    sessions = info.get("onnxruntime_sessions") or {}
    models = [
        call.model or (str(name) if session == MISSING else _session_name(sessions, session))
        for call, session, name in zip(
            calls,
            ops["session"][rows].tolist(),
            ops.names("name").take(rows).to_list(),
            strict=True,
        )
    ]
    values = np.array([call.values for call in calls], np.int64)
    return rows, values.reshape(-1, len(CALL_ARGUMENTS)), models


def _session_name(names: dict[str, str], session: int) -> str:
    return str(names.get(str(session)) or f"session {session}")


class _Call(NamedTuple):
    """Values of `CALL_ARGUMENTS`, `MISSING` if unknown, and the model that the user has named."""

    values: list[int]
    model: str | None = None


def _arguments(text: str) -> _Call | None:
    """Return the arguments of a call; None if it does not call a model."""
    if '"tokens"' not in text:
        return None
    try:
        given: Any = json.loads(text)
    except ValueError:  # a file may contain anything
        return None
    if not isinstance(given, dict):
        return None
    values = {name: given[name] for name in CALL_ARGUMENTS if _is_size(given.get(name))}
    model = None
    if given.get("phase") in PHASES:
        model = str(given.get("model", "model"))
        values["decode"] = PHASES.index(given["phase"])
    elif not {"turn", "past_tokens", "cache_bytes"} & values.keys():
        return None
    if "tokens" not in values:
        return None
    return _Call([values.get(name, MISSING) for name in CALL_ARGUMENTS], model)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX


def _generations(
    models: list[_Model], threads: list[int], arguments: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the generation and the phase of each call, and the tokens in its cache before it.

    The generation is `MISSING` if it may be one of several.
    """
    generation = np.empty(len(models), np.int64)
    phase = np.empty(len(models), np.int64)
    pasts = arguments[:, 2].copy()
    known = _Known()
    for i, (model, thread, (batch, tokens, held, _, turn, decode)) in enumerate(
        zip(models, threads, arguments.tolist(), strict=True)
    ):
        past = held
        phase[i], generation[i] = PREFILL, MISSING
        if held == turn == decode == MISSING:
            continue
        if MISSING not in (turn, decode):
            number = known.turns.setdefault((model, turn), len(known.decodes))
        elif turn != MISSING:
            number = known.with_cache(model, turn, tokens, past)
        elif decode != MISSING:
            number, past = known.marked(model, thread, tokens, past, is_prefill=decode == PREFILL)
        else:
            try:
                number = known.continued(model, thread, batch, tokens, past)
            except AmbiguousCacheError:
                continue
        if number == len(known.decodes):
            known.decodes.append(False)
        known.decodes[number] |= tokens == 1 and past != 0
        is_decode = known.decodes[number] if decode == MISSING else decode == DECODE
        generation[i] = number
        phase[i] = DECODE if is_decode else PREFILL
        pasts[i] = past
        if turn == decode == MISSING:
            known.called(i, model, thread, number, (batch, tokens, past))
    is_of_cache = (arguments[:, 5] == MISSING) & (generation != MISSING)
    _set_verifying(generation, phase, pasts, arguments[:, 1], np.flatnonzero(is_of_cache))
    return generation, phase, pasts


def _set_verifying(
    generation: IntArray, phase: IntArray, past: IntArray, tokens: IntArray, calls: IntArray
) -> None:
    """Count calls that verify proposals as decode, also if no call processes a single token.

    After such a call, the cache holds fewer tokens than were processed. Earlier calls with as many
    tokens have verified proposals that were all accepted.
    """
    for number in np.unique(generation[calls]).tolist():
        of_number = calls[generation[calls] == number]
        n, held = tokens[of_number], past[of_number]
        taken_back = (held[1:] < held[:-1] + n[:-1]) & (n[:-1] <= MAX_DRAFT) & (held[1:] > 0)
        taken_back[:1] = False  # the first call processes the prompt
        if not taken_back.any():
            continue
        first = int(taken_back.argmax())
        while first > 1 and n[first - 1] == n[first]:
            first -= 1
        phase[of_number[first:]] = DECODE


@dataclass(slots=True, eq=False)
class _Use(CacheUse):
    """The calls of a generation of a session."""

    number: int = 0
    thread: int = 0
    batch: int = MISSING


class _Known:
    """The generations of the calls so far.

    Attributes
    ----------
    turns
        The generation of each model and turn.
    caches
        The last generation of each model with each cache.
    marks
        The last marked generation of each model and thread.
    held
        Number of tokens that each marked generation has processed.
    expected
        Thread and generation by model, batch and number of processed tokens, the latest last.
    uses
        Generations of each session, by number, the latest last.
    decodes
        Whether each generation has a call that processes a single token.
    """

    def __init__(self) -> None:
        self.turns: dict[tuple[_Model, int], int] = {}
        self.caches: dict[tuple[_Model, int], int] = {}
        self.marks: dict[tuple[_Model, int], int] = {}
        self.held: dict[int, int] = {}
        self.expected: dict[tuple[_Model, int, int], list[tuple[int, int]]] = {}
        self.uses: dict[_Model, dict[int, _Use]] = {}
        self.decodes: list[bool] = []

    def continued(self, model: _Model, thread: int, batch: int, tokens: int, past: int) -> int:
        """Return the generation that a call continues, or the number of a new one."""
        candidates = self.expected.get((model, batch, past)) if past else None
        if not candidates:
            return self._continued_by_lengths(model, thread, tokens, past)
        of_thread = [i for i, (other, _) in enumerate(candidates) if other == thread]
        _, number = candidates.pop(of_thread[-1] if of_thread else -1)
        return len(self.decodes) if self._is_turn(number, tokens) else number

    def _continued_by_lengths(self, model: _Model, thread: int, tokens: int, past: int) -> int:
        uses = reversed(self.uses.get(model, {}).values())
        of_thread = [(use, past) for use in uses if use.thread == thread]
        use = continued(of_thread[:MOST], tokens)
        return len(self.decodes) if use is None else use.number

    def called(
        self, at: int, model: _Model, thread: int, number: int, lengths: tuple[int, int, int]
    ) -> None:
        """Take the call `at` of a session into account: its batch, tokens and cached tokens."""
        batch, tokens, past = lengths
        of_model = self.uses.setdefault(model, {})
        use = of_model.pop(number, None) or _Use(number=number)
        before = self.expected.get((model, use.batch, use.held), [])
        if (use.thread, number) in before:
            before.remove((use.thread, number))
        use.thread, use.batch = thread, batch
        use.called(past, tokens, at)
        of_model[number] = use
        self.expected.setdefault((model, batch, use.held), []).append((thread, number))

    def with_cache(self, model: _Model, cache: int, tokens: int, past: int) -> int:
        """Return the generation of a call with a cache."""
        number = self.caches.get((model, cache), len(self.decodes))
        if past == 0 or (number < len(self.decodes) and self._is_turn(number, tokens)):
            number = len(self.decodes)
        self.caches[model, cache] = number
        return number

    def _is_turn(self, number: int, tokens: int) -> bool:
        return self.decodes[number] and tokens > MAX_DRAFT

    def marked(
        self, model: _Model, thread: int, tokens: int, past: int, *, is_prefill: bool
    ) -> tuple[int, int]:
        """Return the generation of a call whose phase the user has marked, and its cached tokens.

        A prefill begins a generation unless it continues a cache. Other calls continue the last one
        of the model on the thread, or the one that has processed as many tokens as they say.
        """
        number = self.marks.get((model, thread), len(self.decodes))
        if is_prefill and past <= 0:
            number, past = len(self.decodes), 0
        elif past == MISSING:
            past = self.held.get(number, MISSING)
        elif self.held.get(number) != past:
            same = [other for (of, _), other in self.marks.items() if of == model]
            number = next((other for other in same if self.held[other] == past), number)
        self.marks[model, thread] = number
        self.held[number] = MISSING if past == MISSING else past + tokens
        return number, past
