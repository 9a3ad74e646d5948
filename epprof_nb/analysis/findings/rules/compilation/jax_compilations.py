"""Findings on code that JAX compiles again and again."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.findings.finding import Finding, capitalised, code, op_id_of, place_name
from epprof_nb.analysis.frameworks.training_phases import is_of_type
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import arguments
from epprof_nb.util.format import duration, plural, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

MIN_COMPILATIONS = 3
"""Minimum number of compilations of one function at one place: the first one is needed."""
_SHOWN_ARGUMENTS, _SHOWN_VALUES, _VALUE_CHARACTERS = 2, 3, 40


def repeated_compilations(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on each place that makes JAX compile the same functions repeatedly.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> list(repeated_compilations(ProfileIndex(synthetic_profile(activities=100))))
    []
    """
    ops = index.profile.tables["ops"]
    is_stage = is_of_type(index, "trace", "lower", "compile") & ops.names("source").equals("jax")
    rows = np.flatnonzero(is_stage & has_host_time(ops))
    if not len(rows):
        return
    rows = rows[np.argsort(ops["start_ns"][rows], kind="stable")]
    function, given = arguments(ops.names("args"), rows, ["function", "arguments"])
    caller = index.tree.nearest_ancestor(~is_stage)
    place = index.cached(Places).of_op[caller[rows]]
    is_compile = ops.names("op_type").equals("compile")[rows]
    groups, first = group_codes(place, function.codes)
    again: dict[int, list[IntArray]] = {}
    for group in range(len(first)):
        of_group = np.flatnonzero(groups == group)
        compiled = of_group[is_compile[of_group]]
        if len(compiled) >= MIN_COMPILATIONS and function.codes[first[group]] != MISSING:
            later = of_group[of_group > compiled[0]]
            again.setdefault(int(place[first[group]]), []).append(later)
    for of_place in again.values():
        of_place.sort(key=lambda later: -int(ops["duration_ns"][rows[later]].sum()))
        names = [str(function.distinct[function.codes[later[0]]]) for later in of_place]
        times = 1 + int(is_compile[of_place[0]].sum())
        later = np.sort(rows[np.concatenate(of_place)])
        at = place_name(index, int(caller[later[0]])) or "the code"
        of_first = of_place[0]
        same = is_compile & (groups == groups[of_first[0]])
        changes = _changes([given.distinct[c] if c >= 0 else None for c in given.codes[same]])
        yield _finding(index, later, _text(at, names, times), changes)


def _changes(given: list[str | None]) -> dict[str, list[str]] | None:
    """Return the values of the arguments that differ between compilations; None if unknown.

    Parameters
    ----------
    given
        The arguments of each compilation as JSON.
    """
    if None in given:
        return None
    calls = [json.loads(text) for text in given if text is not None]
    values = {
        name: list(dict.fromkeys(str(call.get(name, "missing")) for call in calls))
        for name in dict.fromkeys(name for call in calls for name in call)
    }
    return {name: of_name for name, of_name in values.items() if len(of_name) > 1}


def _change_text(changes: dict[str, list[str]]) -> str:
    if not changes:
        return " Each time, the arguments have the same shapes and dtypes."
    shown = []
    for name, values in list(changes.items())[:_SHOWN_ARGUMENTS]:
        more = f" and {len(values) - _SHOWN_VALUES} more" if len(values) > _SHOWN_VALUES else ""
        texts = ", ".join(shorten(value, _VALUE_CHARACTERS) for value in values[:_SHOWN_VALUES])
        shown.append(f"{code(name)} is {texts}{more}")
    if len(changes) > _SHOWN_ARGUMENTS:
        others = len(changes) - _SHOWN_ARGUMENTS
        shown.append(f"{plural(others, 'other argument')} {'change' if others > 1 else 'changes'}")
    return f" The arguments differ: {'; '.join(shown)}."


def _remedy(changes: dict[str, list[str]] | None) -> str:
    if changes:
        return (
            "Call the function with the same shapes, dtypes and static arguments: pad arrays to a "
            "few sizes, drop incomplete batches, or pass changing values as arrays."
        )
    if changes is not None:
        return (
            "Call jax.jit once, outside of loops: JAX compiles each new function object again. "
            "jax.config.update('jax_explain_cache_misses', True) logs other reasons."
        )
    return (
        "Call the function with the same shapes, dtypes and static arguments, and call jax.jit "
        "once, outside of loops. jax.config.update('jax_explain_cache_misses', True) "
        "logs the reasons."
    )


def _text(place: str, names: list[str], times: int) -> str:
    others = f", and {plural(len(names) - 1, 'other function')}" if len(names) > 1 else ""
    return f"{capitalised(place)} makes JAX compile {code(names[0])} {times} times{others}"


def _finding(
    index: ProfileIndex, rows: IntArray, text: str, changes: dict[str, list[str]] | None
) -> Finding:
    ops = index.profile.tables["ops"]
    total = int(ops["duration_ns"][rows].sum())
    longest = int(rows[int(ops["duration_ns"][rows].argmax())])
    return Finding(
        f"{text}; the compilations after the first take {duration(total)}."
        f"{'' if changes is None else _change_text(changes)}",
        total,
        int(ops["start_ns"][longest]),
        int(ops["end_ns"][longest]),
        kind="compilation",
        remedy=_remedy(changes),
        op_id=op_id_of(index, longest),
        table="ops",
        rows=partial(np.copy, rows),
    )
