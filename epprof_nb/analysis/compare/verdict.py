"""Comparison of two sides, each one or more recordings: the verdict and the tables behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from epprof_nb.analysis.compare.match import Pair, Side, match, path_names
from epprof_nb.analysis.compare.measure import (
    elapsed,
    measure_kernels,
    measure_ops,
    repeats_of,
)
from epprof_nb.analysis.compare.refusals import Refusal, refusals, refusals_of_ops
from epprof_nb.analysis.compare.statistics import ratios
from epprof_nb.analysis.compare.tables import Quantity, comparison_table
from epprof_nb.analysis.index import ProfileIndex
from epprof_nb.analysis.op_paths import SESSION
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, plural, shorten, signed_percent

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from epprof_nb.analysis.compare.measure import OpMeasures
    from epprof_nb.analysis.compare.statistics import FloatArray, Ratios
    from epprof_nb.analysis.dataframe import ResultTable
    from epprof_nb.data.profile_data import ProfileData

Verdict: TypeAlias = Literal["faster", "slower", "no difference found", "cannot be compared"]

FLOORS = {"device": 0.005, "host": 0.01}
"""Least spread between recordings, by the place where a time is measured. Kernels of a GPU vary by
less than what a busy host, which also runs the commands of the host device, adds to its times."""
ALTERNATED_FLOORS = {"device": 0.0025, "host": 0.005}
"""The same for recordings whose repeats alternated, which share the drift of the machine."""
CHANGED = ("faster", "slower")
"""Verdicts on a difference that was found."""
SINGLE_RUN_SPREAD = 0.15
"""Difference between single runs of the same code that occurs on an undisturbed machine."""


@dataclass(frozen=True, slots=True)
class Total:
    """Elapsed time per repeat of both sides, and the interval of the ratio; None if not tested."""

    before_ns: float
    after_ns: float
    ratios: Ratios | None = None

    @property
    def change(self) -> float:
        """The relative change, as 0.05 for 5 % slower."""
        if self.ratios is not None:
            return float(self.ratios.ratio[0]) - 1
        return self.after_ns / self.before_ns - 1


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """Result of `compare`.

    Attributes
    ----------
    verdict, reason
        The verdict on the elapsed time, and the sentences that explain it.
    total
        The elapsed time per repeat.
    ops, kernels, nodes
        Tables of the same names in `epprof_nb.data.columns.TABLES`, with the prefix ``compare_``.
    notes
        Further sentences: differences that were allowed.
    repeats
        Repeats of each recording of the old and of the new side.
    """

    verdict: Verdict
    reason: str
    total: Total
    ops: ResultTable
    kernels: ResultTable
    nodes: ResultTable
    notes: tuple[str, ...]
    repeats: tuple[tuple[int, ...], tuple[int, ...]]


class _Recordings:
    """The recordings of one side, with what was measured."""

    def __init__(self, profiles: Sequence[ProfileData]) -> None:
        self.indexes = [ProfileIndex(profile) for profile in profiles]
        self.side = Side()
        self.paths = [self.side.add(index) for index in self.indexes]
        count = len(self.side.children)
        self.ops = [
            measure_ops(index, paths, count)
            for index, paths in zip(self.indexes, self.paths, strict=True)
        ]
        self.kernels = [
            measure_kernels(index, paths)
            for index, paths in zip(self.indexes, self.paths, strict=True)
        ]
        self.elapsed = [elapsed(index)[None, :] for index in self.indexes]

    def shapes(self) -> list[str | None]:
        """Return the input shapes of each path, from the last op that has any."""
        found: list[str | None] = [None] * len(self.side.children)
        for index, paths in zip(self.indexes, self.paths, strict=True):
            shapes = index.profile.tables["ops"].names("input_shapes")
            last = np.full(len(found), MISSING)
            known = np.flatnonzero(shapes.codes >= 0)
            last[paths[known]] = shapes.codes[known]
            for path in np.flatnonzero(last >= 0).tolist():
                found[path] = shapes.categories[last[path]]
        return found

    def first_ops(self, column: str) -> list[str | None]:
        """Return a name of the first op of each path."""
        found: list[str | None] = [None] * len(self.side.children)
        for index, paths in zip(self.indexes, self.paths, strict=True):
            values = index.profile.tables["ops"].names(column)
            present, first = np.unique(paths[:-1], return_index=True)
            for path, value in zip(present.tolist(), values.take(first).to_list(), strict=True):
                found[path] = found[path] or value
        return found


def compare(
    old: Sequence[ProfileData],
    new: Sequence[ProfileData],
    *,
    allow: Collection[str] = (),
    names: tuple[str, str] = ("old", "new"),
) -> ComparisonResult:
    """Compare two sides.

    Parameters
    ----------
    old, new
        The recordings of each side, at least one.
    allow
        Differences that do not prevent the comparison; see
        `epprof_nb.analysis.compare.refusals.ALLOWED`.
    names
        Names of the sides for the commands that the reason suggests.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> profile = synthetic_profile(activities=100)
    >>> compare([profile], [profile]).verdict  # was not repeated
    'cannot be compared'
    """
    alternated = _alternated(old, new)
    if alternated:
        old, new = (sorted(side, key=_recording_id) for side in (old, new))
    floors = ALTERNATED_FLOORS if alternated else FLOORS
    before, after = (_Recordings(side) for side in (old, new))
    pairs = match(before.side, after.side)
    texts = path_names(pairs, before.side, after.side)
    found = [
        *refusals(before.indexes, after.indexes),
        *refusals_of_ops(pairs, texts, (before.ops, after.ops), (before.shapes(), after.shapes())),
    ]
    refused = [refusal for refusal in found if refusal.kind not in allow]
    single = all(repeats_of(index) == 1 for index in (*before.indexes, *after.indexes))
    tested = not refused and not single
    test = _Test(tested, alternated, floors)
    ops = _op_table(pairs, texts, before, after, test)
    kernels = _kernel_table(pairs, texts, before, after, test)
    total = Total(_overall(before.elapsed), _overall(after.elapsed))
    if tested:
        floor = np.array([floors["host"]])
        found_ratios = ratios(before.elapsed, after.elapsed, floor, paired=alternated)
        total = Total(total.before_ns, total.after_ns, found_ratios)
    verdict, reason = _verdict(total, ops, refused, names, alternated=alternated)
    repeats = tuple(tuple(repeats_of(i) for i in side.indexes) for side in (before, after))
    is_node = np.array([kind == "node" for kind in ops.values("category")], np.bool_)
    return ComparisonResult(
        verdict=verdict,
        reason=reason,
        total=total,
        ops=ops,
        kernels=kernels,
        nodes=ops.take(is_node),
        notes=tuple(refusal.text for refusal in found if refusal.kind in allow),
        repeats=(repeats[0], repeats[1]),
    )


@dataclass(frozen=True, slots=True)
class _Test:
    """Whether the recordings can be tested, whether as pairs, and the least spreads."""

    is_possible: bool
    is_paired: bool
    floors: dict[str, float]


def _alternated(old: Sequence[ProfileData], new: Sequence[ProfileData]) -> bool:
    """Return whether each recording alternated with one of the other side."""
    sides = [[profile.info.get("alternated") for profile in side] for side in (old, new)]
    if not all(entry for side in sides for entry in side):
        return False
    ids, places = (
        [{entry.get(key) for entry in side if entry} for side in sides]
        for key in ("recording", "side")
    )
    return ids[0] == ids[1] and len(ids[0]) == len(old) == len(new) and places[0] != places[1]


def _recording_id(profile: ProfileData) -> str:
    return str(profile.info["alternated"].get("recording"))


def _overall(recordings: Sequence[FloatArray]) -> float:
    return float(np.exp(np.mean([np.log(np.median(values)) for values in recordings])))


def _op_table(
    pairs: Sequence[Pair],
    texts: Sequence[str],
    before: _Recordings,
    after: _Recordings,
    test: _Test,
) -> ResultTable:
    """Return one row per op path that ran in a repeat."""
    categories = before.first_ops("category"), after.first_ops("category")
    providers = before.first_ops("provider"), after.first_ops("provider")
    quantities = []
    for number, pair in enumerate(pairs[1:], 1):
        # A pair has a path on at least one side.
        side, path = (before, pair.old or SESSION) if pair.new is None else (after, pair.new)
        kind = side.side.types[path]
        one, other = _of_path(before.ops, pair.old), _of_path(after.ops, pair.new)
        if kind == "cell" or not any(m["count"].any() for m in (*one, *other)):
            continue  # a cell contains the repeats
        measure = "device" if all(m["device_ns"].all() for m in (*one, *other)) else "host"
        values = [[m[f"{measure}_ns"] for m in side] for side in (one, other)]
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
                status=pair.status,
                before=values[0],
                after=values[1],
                counts=([m["count"] for m in one], [m["count"] for m in other]),
                bytes=([m["bytes"] for m in one], [m["bytes"] for m in other]),
                floor=test.floors[measure if _has_gpu(before, after) else "host"],
            )
        )
    return comparison_table(quantities, tested=test.is_possible, paired=test.is_paired)


def _of_path(side: Sequence[OpMeasures], path: int | None) -> list[dict[str, np.ndarray]]:
    """Return the measures of a path, one dict per recording; nothing on a side that lacks it."""
    names = ("host_ns", "device_ns", "bytes", "count")
    return [] if path is None else [{n: getattr(m, n)[path] for n in names} for m in side]


def _either(values: tuple[Sequence[str | None], Sequence[str | None]], pair: Pair) -> str | None:
    new = None if pair.new is None else values[1][pair.new]
    return new or (None if pair.old is None else values[0][pair.old])


def _has_gpu(before: _Recordings, after: _Recordings) -> bool:
    """Return whether the device work was that of GPUs alone."""
    for index in (*before.indexes, *after.indexes):
        kinds = {d.get("device_id"): d.get("kind") for d in index.profile.info.get("devices") or ()}
        if any(kinds.get(device) != "cuda" for device in index.device_ids if device >= 0):
            return False
    return True


def _kernel_table(
    pairs: Sequence[Pair],
    texts: Sequence[str],
    before: _Recordings,
    after: _Recordings,
    test: _Test,
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
    floor = test.floors["device" if _has_gpu(before, after) else "host"]
    return comparison_table(
        [
            Quantity(
                path=texts[number] or "(no op)",
                labels={"name": name},
                status="removed" if not times[1] else "added" if not times[0] else "matched",
                before=times[0],
                after=times[1],
                counts=(counts[0], counts[1]),
                bytes=None,
                floor=floor,
            )
            for (number, name), (times, counts) in rows.items()
        ],
        tested=test.is_possible,
        paired=test.is_paired,
        columns=("name",),
    )


def _verdict(
    total: Total,
    ops: ResultTable,
    refused: Sequence[Refusal],
    names: tuple[str, str],
    *,
    alternated: bool,
) -> tuple[Verdict, str]:
    """Return the verdict on the elapsed time, and the sentences that explain it."""
    old, new = names
    settle = (
        f"Record both with repeats: `%%gpuprofile {old} --repeat 20`, then "
        f"`%%gpuprofile {new} --repeat 20 --baseline {old}`."
    )
    times = f"{duration(total.before_ns)} before, {duration(total.after_ns)} after"
    if refused:
        reasons = " ".join(dict.fromkeys(refusal.text for refusal in refused))
        if any(refusal.kind == "repeats" for refusal in refused):
            reasons += f" {settle}"
        return "cannot be compared", reasons
    found = total.ratios
    if found is None:
        text = (
            f"One run each ({times}, {signed_percent(total.change)}): differences below "
            f"{SINGLE_RUN_SPREAD * 100:.0f} % are within what single runs of the same code vary. "
            f"{settle}"
        )
        return "cannot be compared", text
    interval = f"{signed_percent(found.low[0] - 1)} to {signed_percent(found.high[0] - 1)}"
    text = (
        f"{times} per repeat: {signed_percent(total.change)} ({interval}). {_largest_changes(ops)}"
        f"{'The repeats of both alternated. ' if alternated else ''}"
        f"Recordings of the same code are taken to vary by {found.spread[0] * 100:.1f} %, so a "
        f"change of {found.detectable[0] * 100:.1f} % or more would be found."
    )
    if not found.differs[0]:
        return "no difference found", text
    return ("slower" if found.ratio[0] > 1 else "faster"), text


def _largest_changes(ops: ResultTable, limit: int = 3) -> str:
    """Return a sentence with the innermost ops that differ, the largest difference first."""
    paths, changes = ops.values("path"), ops["change"]
    rows = [i for i, verdict in enumerate(ops.values("verdict")) if verdict in CHANGED]
    # An op that contains a changed op has changed because of it.
    above = {parent for i in rows for parent in _paths_above(paths[i])}
    rows = [i for i in rows if paths[i] not in above]
    if not rows:
        return ""
    shown = [f"`{shorten(paths[i], 60)}` {signed_percent(changes[i])}" for i in rows[:limit]]
    more = f" and {plural(len(rows) - limit, 'more op')}" if len(rows) > limit else ""
    return f"Changed: {', '.join(shown)}{more}. "


def _paths_above(path: str) -> list[str]:
    parts = path.split(" / ")
    return [" / ".join(parts[:end]) for end in range(1, len(parts))]
