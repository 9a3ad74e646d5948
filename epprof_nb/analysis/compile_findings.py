"""Findings on code that JAX compiles again and again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.findings import Finding, capitalised, code, op_id_of, place_name
from epprof_nb.analysis.framework_phases import is_of_type
from epprof_nb.analysis.op_status import has_host_time
from epprof_nb.analysis.places import Places
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import arguments
from epprof_nb.util.format import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

MIN_COMPILATIONS = 3
"""Least number of compilations of one function at one place: the first one is needed."""


def repeated_compilations(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on each place that has JAX compile the same functions again and again.

    Examples
    --------
    >>> from epprof_nb.analysis.index import ProfileIndex
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
    function = arguments(ops.names("args"), rows, ["function"])[0]
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
        yield _finding(index, later, _text(at, names, times))


def _text(place: str, names: list[str], times: int) -> str:
    others = f", and {plural(len(names) - 1, 'other function')}" if len(names) > 1 else ""
    return f"{capitalised(place)} has JAX compile {code(names[0])} {times} times{others}"


def _finding(index: ProfileIndex, rows: IntArray, text: str) -> Finding:
    ops = index.profile.tables["ops"]
    total = int(ops["duration_ns"][rows].sum())
    longest = int(rows[int(ops["duration_ns"][rows].argmax())])
    return Finding(
        f"{text}; the compilations after the first take {duration(total)}.",
        total,
        int(ops["start_ns"][longest]),
        int(ops["end_ns"][longest]),
        kind="compilation",
        remedy="Call the function with the same shapes, dtypes and static arguments, and make it "
        "with jax.jit once, outside of loops. jax.config.update('jax_explain_cache_misses', True) "
        "logs the reasons.",
        op_id=op_id_of(index, longest),
        table="ops",
        rows=partial(np.copy, rows),
    )
