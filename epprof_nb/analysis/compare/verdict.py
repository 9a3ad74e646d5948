"""Comparison of two sides, each one or more recordings: the verdict and the tables behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from epprof_nb.analysis.base.devices import gpu_ids
from epprof_nb.analysis.compare.aligned import AlignedTimelines, align
from epprof_nb.analysis.compare.match import match, path_names
from epprof_nb.analysis.compare.quantities import kernel_table, notes_of_nodes, op_table
from epprof_nb.analysis.compare.recording_cost import recording_refusals
from epprof_nb.analysis.compare.recordings import Recordings, have_common_recording
from epprof_nb.analysis.compare.refusals import (
    MIN_REPEATS,
    Refusal,
    refusals,
    refusals_of_ops,
    remedy,
)
from epprof_nb.analysis.compare.spread import ASSUMED, ASSUMED_ALTERNATED, place_of
from epprof_nb.analysis.compare.statistics import is_too_wide, ratios
from epprof_nb.analysis.compare.tables import Test
from epprof_nb.util.format import duration, in_backticks, percent, plural, signed_percent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.analysis.compare.spread import Spread
    from epprof_nb.analysis.compare.statistics import FloatArray, Ratios
    from epprof_nb.data.profile_data import ProfileData

Verdict: TypeAlias = Literal[
    "faster", "slower", "no difference found", "cannot tell", "cannot be compared"
]

CHANGED = ("faster", "slower")
"""Verdicts on a difference that was found."""
_LEAST_SHARE = 0.01
"""Share of a repeat that an op takes at least on one side, to be named in the reason."""
_UNSTEADY = 0.5
"""Spread from drift above which its value tells nothing of other recordings."""
SINGLE_RUN_SPREAD = 0.15
"""Difference between single runs of the same code that occurs on an undisturbed machine."""


@dataclass(frozen=True, slots=True)
class Total:
    """Elapsed time per repeat of both sides, and the interval of the ratio; None if not tested.

    `is_paired` says whether the ratio is the median of those of pairs of repeats, which may differ
    from that of the medians.
    """

    before_ns: float
    after_ns: float
    ratios: Ratios | None = None
    is_paired: bool = False

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
        Tables of the same names in `epprof_nb.data.column_docs.TABLES`, with the prefix
        ``compare_``.
    notes
        Further sentences: differences that were allowed, and repeats without nodes.
    repeats
        Repeats of each recording of the old and of the new side.
    timelines
        A typical repeat of each side.
    paths
        Path of each pair of ops, by its number.
    """

    verdict: Verdict
    reason: str
    total: Total
    ops: ResultTable
    kernels: ResultTable
    nodes: ResultTable
    notes: tuple[str, ...]
    repeats: tuple[tuple[int, ...], tuple[int, ...]]
    timelines: AlignedTimelines
    paths: tuple[str, ...]


def compare(
    old: Sequence[ProfileData],
    new: Sequence[ProfileData],
    *,
    allow: Collection[str] = (),
    names: tuple[str, str] = ("old", "new"),
    spreads: Callable[[str, str], Spread | None] = lambda *_: None,
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
    spreads
        Returns the spread between recordings that was measured on a machine and its devices; None
        if it was not.

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
    before, after = (Recordings(side) for side in (old, new))
    pairs = match(before.side, after.side)
    texts = path_names(pairs, before.side, after.side)
    found = [
        *refusals(before.indexes, after.indexes),
        *recording_refusals(before.indexes, after.indexes),
        *refusals_of_ops(pairs, texts, (before.ops, after.ops), (before.shapes(), after.shapes())),
    ]
    refused = [refusal for refusal in found if refusal.kind not in allow]
    single = all(count == 1 for side in (before, after) for count in side.repeats)
    pooled = single and min(len(old), len(new)) >= MIN_REPEATS
    indexes = *before.indexes, *after.indexes
    spread = _spread(indexes, spreads, alternated=alternated)
    # What recording costs does not change the times of a GPU.
    is_possible = not refused or (
        all(refusal.kind == "options" for refusal in refused) and _has_only_gpus(indexes)
    )
    is_possible &= pooled or not single
    test = Test(is_possible, not refused, alternated, pooled, spread)
    ops = op_table(pairs, texts, before, after, test)
    kernels = kernel_table(pairs, texts, before, after, test)
    total = Total(_overall(before.elapsed), _overall(after.elapsed))
    if test.includes("total"):
        tested = ratios(
            test.pooled(before.elapsed),
            test.pooled(after.elapsed),
            np.array([spread.total]),
            freedom=spread.freedom,
            paired=alternated,
        )
        total = Total(total.before_ns, total.after_ns, tested, alternated)
    verdict, reason = _verdict(total, ops, refused, names, test)
    if have_common_recording(before.indexes, after.indexes):
        reason = f"A recording is compared with itself: both sides have the same one. {reason}"
    is_node = np.array([kind == "node" for kind in ops.values("category")], np.bool_)
    return ComparisonResult(
        verdict=verdict,
        reason=reason,
        total=total,
        ops=ops,
        kernels=kernels,
        nodes=ops.take(is_node),
        notes=(
            *(refusal.text for refusal in found if refusal.kind in allow),
            *notes_of_nodes(before.ops, after.ops),
        ),
        repeats=(before.repeats, after.repeats),
        timelines=align(pairs, before, after),
        paths=tuple(texts),
    )


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


def _spread(
    indexes: Sequence[ProfileIndex],
    spreads: Callable[[str, str], Spread | None],
    *,
    alternated: bool,
) -> Spread:
    """Return the spread that was measured where the recordings were made, or the assumed one."""
    kind = "gpu" if _has_only_gpus(indexes) else "host"
    if alternated:
        return ASSUMED_ALTERNATED[kind]
    place = place_of(indexes)
    measured = None if place is None else spreads(*place)
    return measured or ASSUMED[kind]


def _has_only_gpus(indexes: Sequence[ProfileIndex]) -> bool:
    """Return whether only GPUs did device work."""
    return all(
        {device for device in index.device_ids if device >= 0} <= gpu_ids(index.profile.info)
        for index in indexes
    )


def _overall(recordings: Sequence[FloatArray]) -> float:
    return float(np.exp(np.mean([np.log(np.median(values)) for values in recordings])))


def _verdict(
    total: Total,
    ops: ResultTable,
    refused: Sequence[Refusal],
    names: tuple[str, str],
    test: Test,
) -> tuple[Verdict, str]:
    """Return the verdict on the elapsed time, and the sentences that explain it."""
    old, new = names
    settle = (
        f"Record both with repeats: `%%gpuprofile {old} --repeat 20`, then "
        f"`%%gpuprofile {new} --repeat 20 --baseline {old}`. In a script or a `with` block, call "
        "`epprof_nb.step()` at the start of each of 20 repetitions."
    )
    times = f"{duration(total.before_ns)} before, {duration(total.after_ns)} after"
    if refused:
        reasons = " ".join(dict.fromkeys(refusal.text for refusal in refused)) + remedy(refused)
        if any(refusal.kind == "repeats" for refusal in refused):
            reasons += f" {settle}"
        changes = _largest_changes(ops, total)
        if changes:
            reasons += f" Device times are compared all the same. {changes.rstrip()}"
        return "cannot be compared", reasons
    found = total.ratios
    if found is None:
        text = (
            f"One run each ({times}, {signed_percent(total.change)}). Single runs give no verdict, "
            "however large the difference: on an undisturbed machine, those of the same code "
            f"differ by up to {percent(SINGLE_RUN_SPREAD)}, and on a busy one by more. {settle}"
        )
        return "cannot be compared", text
    verdict: Verdict = "cannot tell" if _is_too_wide(found) else "no difference found"
    if found.differs[0]:
        verdict = "slower" if found.ratio[0] > 1 else "faster"
    change = f"{times} per repeat: {signed_percent(total.change)}"
    of_pairs = "median of the pairs" if total.is_paired else ""
    changes = _largest_changes(ops, total)
    if _is_too_wide(found):
        of_pairs = f" ({of_pairs})" if of_pairs else ""
        text = f"{change}{of_pairs}. {changes}{_on_width(found, test)} {_steadier(test)}"
        return verdict, text
    interval = f"{signed_percent(found.low[0] - 1)} to {signed_percent(found.high[0] - 1)}"
    interval = f"{of_pairs}; {interval}" if of_pairs else interval
    text = (
        f"{change} ({interval}). {changes}{_on_spread(found, test)} A change of "
        f"{found.detectable[0] * 100:.1f} % or more would be found."
    )
    return verdict, text


def _is_too_wide(found: Ratios) -> bool:
    return is_too_wide(float(found.low[0]) - 1, float(found.high[0]) - 1)


def _on_width(found: Ratios, test: Test) -> str:
    """Return sentences that say why an interval tells too little."""
    differs = bool(found.differs[0])
    if found.spread[0] > _UNSTEADY and _drifts(found, test):
        what = "tell how large the change is" if differs else "compare"
        limit = percent(_UNSTEADY)
        return f"The recordings are too unsteady to {what}: their times drift by more than {limit}."
    what = "how large the change is" if differs else "whether the time changed"
    return f"{_on_spread(found, test)} The recordings vary too much to tell {what}."


def _drifts(found: Ratios, test: Test) -> bool:
    """Return whether a drift within the recordings adds to the spread that is known."""
    return not found.is_measured and bool(found.spread[0] > 1.2 * test.spread.total)


def _steadier(test: Test) -> str:
    """Return a sentence that says how recordings vary by less."""
    more = "Record more runs" if test.is_pooled else "Record more repeats"
    if not test.is_paired:
        more += ", or both versions alternately,"
    return f"{more} while no other program uses the machine."


def _on_spread(found: Ratios, test: Test) -> str:
    """Return a sentence on the spread between recordings, and where it is known from."""
    share = percent(found.spread[0])
    if found.is_measured:
        text = f"Recordings of the same code vary by {share}, as those of each side show."
        return f"Both were recorded alternately. {text}" if test.is_paired else text
    if test.is_paired:
        what = "runs" if test.is_pooled else "repeats"
        return f"The {what} of both alternated; medians are taken to vary by {share} all the same."
    known = test.spread
    if _drifts(found, test):
        return (
            "The times drift within the recordings, so others of the same code are taken to vary "
            f"by {share}."
        )
    if known.recordings:
        return (
            f"Recordings of the same code vary by {share} on this machine: `epprof calibrate` "
            f"measured {known.recordings} on {known.date}."
        )
    return (
        f"Recordings of the same code are assumed to vary by {share}; `epprof calibrate` "
        "measures it."
    )


def _largest_changes(ops: ResultTable, total: Total, limit: int = 3) -> str:
    """Return a sentence with the innermost ops that differ, the largest difference first."""
    paths, changes = ops.values("path"), ops["change"]
    times = zip(ops.values("before_ns"), ops.values("after_ns"), strict=True)
    is_large = [
        (before or 0) >= _LEAST_SHARE * total.before_ns
        or (after or 0) >= _LEAST_SHARE * total.after_ns
        for before, after in times
    ]
    rows = [i for i, verdict in enumerate(ops.values("verdict")) if verdict in CHANGED]
    rows = [i for i in rows if is_large[i]]
    # An op that contains a changed op has changed because of it.
    above = {parent for i in rows for parent in _paths_above(paths[i])}
    rows = [i for i in rows if paths[i] not in above]
    if not rows:
        return ""
    shown = [f"{in_backticks(paths[i], 60)} {signed_percent(changes[i])}" for i in rows[:limit]]
    more = f" and {plural(len(rows) - limit, 'more op')}" if len(rows) > limit else ""
    return f"Changed: {', '.join(shown)}{more}. "


def _paths_above(path: str) -> list[str]:
    parts = path.split(" / ")
    return [" / ".join(parts[:end]) for end in range(1, len(parts))]
