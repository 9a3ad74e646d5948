"""The quantities of a comparison: times of ops and of kernels, on both sides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_paths import SESSION
from epprof_nb.analysis.base.unknown_device_times import has_device_times, has_waits
from epprof_nb.analysis.compare.comparison_table import (
    Elapsed,
    Quantity,
    comparison_table,
    median_ns,
)
from epprof_nb.analysis.compare.contributions import Contributions, contributions
from epprof_nb.analysis.compare.times_per_repeat import repeats_of
from epprof_nb.util.format import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.analysis.compare.comparison_table import Test
    from epprof_nb.analysis.compare.match_ops import Pair
    from epprof_nb.analysis.compare.recordings import Recordings
    from epprof_nb.analysis.compare.spread_between_recordings import Place
    from epprof_nb.analysis.compare.times_per_repeat import OpMeasures
    from epprof_nb.arrays.types import BoolArray


_FURTHER = {
    "device_before_ns": ("device_ns", 0),
    "device_after_ns": ("device_ns", 1),
    "host_before_ns": ("host_ns", 0),
    "host_after_ns": ("host_ns", 1),
}
"""Further columns of times: the measure, and the side."""


def op_table(
    pairs: Sequence[Pair],
    texts: Sequence[str],
    before: Recordings,
    after: Recordings,
    test: Test,
) -> ResultTable:
    """Return one row per op path that ran in a repeat."""
    categories = before.first_ops("category"), after.first_ops("category")
    providers = before.first_ops("provider"), after.first_ops("provider")
    due = contributions(pairs, before, after, is_paired=test.is_paired)
    knows = [
        all(index.cached(has_device_times) for index in side.indexes) for side in (before, after)
    ]
    quantities, of_elapsed, numbers = [], [], []
    further: dict[str, list[int]] = {name: [] for name in _FURTHER}
    for number, pair in enumerate(pairs[1:], 1):
        # A pair has a path on at least one side.
        side, path = (before, pair.old or SESSION) if pair.new is None else (after, pair.new)
        kind = side.side.types[path]
        one, other = _of_path(before, pair.old), _of_path(after, pair.new)
        if kind == "cell" or not any(m["count"].any() for m in (*one, *other)):
            continue  # a cell contains the repeats
        measure: Place = "device" if _launched_work((*one, *other)) else "host"
        is_complete = True
        if _is_inside_run(side, path, categories[0 if pair.new is None else 1]):
            is_complete = all(m["has_nodes"].all() for m in (*one, *other))
            one, other = _where_known(one), _where_known(other)
        values = [[m[f"{measure}_ns"] for m in side] for side in (one, other)]
        with_device = [
            measured if known else () for measured, known in zip((one, other), knows, strict=True)
        ]
        for name, (what, which) in _FURTHER.items():
            measured = (with_device if what == "device_ns" else (one, other))[which]
            further[name].append(median_ns([m[what] for m in measured]))
        numbers.append(number)
        quantities.append(
            Quantity(
                path=texts[number],
                labels={
                    "name": side.side.names[path],
                    "old_name": before.side.names[pair.old or SESSION] if pair.is_renamed else None,
                    "op_type": kind,
                    "category": _either(categories, pair),
                    "provider": _either(providers, pair),
                    "measure": measure,
                },
                measure=measure,
                status=pair.status,
                before=test.pooled(values[0]),
                after=test.pooled(values[1]),
                counts=([m["count"] for m in one], [m["count"] for m in other]),
                bytes=(
                    [m["bytes"] for m in with_device[0]],
                    [m["bytes"] for m in with_device[1]],
                ),
                is_complete=is_complete,
            )
        )
        of_elapsed.append(_elapsed_of(quantities[-1], one, other, test))
    elapsed = Elapsed(
        of_elapsed,
        Contributions(*(ns[numbers] for ns in due)),
        {name: np.array(ns, np.int64) for name, ns in further.items()},
        # Only waits show how device work changes the elapsed time.
        all(knows) and all(has_waits(index) for side in (before, after) for index in side.indexes),
    )
    return comparison_table(quantities, test, elapsed=elapsed)


def _elapsed_of(
    quantity: Quantity,
    one: Sequence[dict[str, np.ndarray]],
    other: Sequence[dict[str, np.ndarray]],
    test: Test,
) -> Quantity:
    """Return the elapsed time of an op; without values if the op has none."""
    times = [[m["elapsed_ns"] for m in side] for side in (one, other)]
    if not any(values.any() for side in times for values in side):
        return replace(quantity, measure="host", status="matched", before=(), after=())
    return replace(
        quantity, measure="host", before=test.pooled(times[0]), after=test.pooled(times[1])
    )


def _of_path(side: Recordings, path: int | None) -> list[dict[str, np.ndarray]]:
    """Return the measures of a path, one dict per recording; empty if the side lacks it."""
    names = ("host_ns", "device_ns", "bytes", "count")
    if path is None:
        return []
    return [
        {name: getattr(measures, name)[path] for name in names}
        | {"has_nodes": measures.has_nodes, "elapsed_ns": parts.inclusive_ns[path]}
        for measures, parts in zip(side.ops, side.parts, strict=True)
    ]


def _is_inside_run(side: Recordings, path: int, categories: Sequence[str | None]) -> bool:
    """Return whether a path is below a run of an ONNX Runtime session."""
    above, types = side.side.above(path), side.side.types
    return any(types[step] == "run" and categories[step] == "session" for step in above)


def _where_known(side: Sequence[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
    """Return the measures in repeats with known nodes; other recordings are left out."""
    return [
        {name: values[m["has_nodes"]] for name, values in m.items()}
        for m in side
        if m["has_nodes"].any()
    ]


def _launched_work(measures: Sequence[dict[str, np.ndarray]]) -> bool:
    """Return whether a path launched device work in every repeat in which it ran."""
    return all((m["device_ns"] > 0)[m["count"] > 0].all() for m in measures)


def _either(values: tuple[Sequence[str | None], Sequence[str | None]], pair: Pair) -> str | None:
    new = None if pair.new is None else values[1][pair.new]
    return new or (None if pair.old is None else values[0][pair.old])


def kernel_table(
    pairs: Sequence[Pair],
    texts: Sequence[str],
    before: Recordings,
    after: Recordings,
    test: Test,
) -> ResultTable:
    """Return one row per kernel name and op path."""
    new_of = {pair.new: number for number, pair in enumerate(pairs) if pair.new is not None}
    old_of = {pair.old: number for number, pair in enumerate(pairs) if pair.old is not None}
    rows: dict[tuple[int, str], tuple[list[list[np.ndarray]], list[list[np.ndarray]]]] = {}
    for which, (side, number_of) in enumerate(((before, old_of), (after, new_of))):
        for recording, kernels in enumerate(side.kernels):
            owners = kernels.paths.tolist()
            for i, (path, name) in enumerate(zip(owners, kernels.names, strict=True)):
                times, counts = rows.setdefault((number_of[path], name), ([[], []], [[], []]))
                for lists, matrix in ((times, kernels.device_ns), (counts, kernels.count)):
                    # A recording that lacks the kernel has no time for it.
                    missing = recording - len(lists[which])
                    lists[which] += [np.zeros(matrix.shape[1], np.int64)] * missing
                    lists[which].append(matrix[i])
    for times, counts in rows.values():
        for which, side in enumerate((before, after)):
            for lists in (times, counts):
                if lists[which]:
                    lacking = side.indexes[len(lists[which]) :]
                    lists[which] += [np.zeros(repeats_of(i), np.int64) for i in lacking]
    return comparison_table(
        [
            Quantity(
                path=texts[number] or "(no op)",
                labels={"name": name},
                measure="device",
                status="removed" if not times[1] else "added" if not times[0] else "matched",
                before=test.pooled(times[0]),
                after=test.pooled(times[1]),
                counts=(counts[0], counts[1]),
                bytes=None,
            )
            for (number, name), (times, counts) in rows.items()
        ],
        test,
        columns=("name",),
    )


def notes_of_nodes(old: Sequence[OpMeasures], new: Sequence[OpMeasures]) -> Iterator[str]:
    """Yield a sentence if the nodes of some repeats are not known."""
    masks = [np.concatenate([m.has_nodes for m in side]) for side in (old, new)]
    if not any(mask.any() for mask in masks):
        yield (
            "No repeat has the nodes of all runs of ONNX Runtime, so nodes are not compared: "
            "`--ort-nodes every` records all nodes."
        )
    elif not all(mask.all() for mask in masks):
        texts = [_of_repeats(mask) for mask in masks]
        yield (
            f"The nodes of ONNX Runtime's runs are known in {texts[0]} of the old code and in "
            f"{texts[1]} of the new code. Their times are from these repeats, which recording "
            "can make longer: nodes may take longer than the median of their run. They are not "
            "tested. `--ort-nodes every` records all nodes."
        )


def _of_repeats(mask: BoolArray) -> str:
    if mask.all():
        return "all repeats"
    return f"{mask.sum():,} of {plural(len(mask), 'repeat')}" if mask.any() else "no repeat"
