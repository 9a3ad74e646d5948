"""Reasons not to compare recordings, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from epprof_nb.analysis.base.missing_records import total_count
from epprof_nb.analysis.compare.times_per_repeat import repeats_of
from epprof_nb.core.least_repeats import MIN_COMPARED
from epprof_nb.util.format import in_backticks, plural, without_backticks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.compare.match_ops import Pair
    from epprof_nb.analysis.compare.op_path_shapes import OpPathShapes
    from epprof_nb.analysis.compare.times_per_repeat import OpMeasures
    from epprof_nb.arrays.types import IntArray

_MAX_CLOCK_RATIO = 1.02
_CLOCKS = {"sm_clock_mhz": "SM clock", "memory_clock_mhz": "memory clock"}

Allowed: TypeAlias = Literal["devices", "clocks", "counts", "shapes", "dropped", "options"]
ALLOWED: tuple[str, ...] = get_args(Allowed)
"""Differences that a user can allow."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason not to compare: its kind, one of `ALLOWED` or another, and a sentence.

    ``if_allowed`` replaces ``text`` if the user allows the difference; empty to keep ``text``.
    """

    kind: str
    text: str
    if_allowed: str = ""

    @property
    def note(self) -> str:
        """Note below the comparison if the user allows the difference."""
        return self.if_allowed or self.text


def remedy(refused: Sequence[Refusal]) -> str:
    """Return a sentence on how to compare anyway, after a space; empty if nothing helps."""
    kinds = list(dict.fromkeys(refusal.kind for refusal in refused))
    if not all(kind in ALLOWED for kind in kinds):
        return ""
    options = " ".join(f"--allow {kind}" for kind in kinds)
    names = ", ".join(f'"{kind}"' for kind in kinds)
    return (
        f" `epprof compare {options}` or `epprof_nb.compare(..., allow=[{names}])` compares them."
    )


def refusals(old: Sequence[ProfileIndex], new: Sequence[ProfileIndex]) -> Iterator[Refusal]:
    """Yield the reasons found in the recordings as a whole."""
    both = [("old", index) for index in old] + [("new", index) for index in new]
    for side, index in both:
        info = index.profile.info
        if info.get("error"):
            error = without_backticks(str(info["error"]), 60)
            yield Refusal("error", f"The {side} recording ended early, by {error}.")
        recorded = info.get("recorded") or {}
        # A launch without a record is one of the records that were dropped.
        dropped = max(total_count(recorded.get("dropped")), total_count(recorded.get("lost")))
        logs = int(recorded.get("ops_lost") or 0) + int(recorded.get("calls_lost") or 0)
        if dropped or logs:
            yield Refusal(
                "dropped",
                f"The {side} recording is incomplete: {dropped:,} activities and {logs:,} ops and "
                "API calls were dropped. Raise `--max-records`, or profile a smaller part.",
            )
    yield from _devices(old, new)
    yield from _clocks(old, new)
    yield from _repeats(both)


def _devices(old: Sequence[ProfileIndex], new: Sequence[ProfileIndex]) -> Iterator[Refusal]:
    names = [
        sorted({name for index in side for name in _used_devices(index)}) for side in (old, new)
    ]
    if names[0] != names[1]:
        texts = [without_backticks(", ".join(side), 100) or "no device" for side in names]
        yield Refusal(
            "devices", f"The device differs: the old code ran on {texts[0]}, the new on {texts[1]}."
        )


def _used_devices(index: ProfileIndex) -> list[str]:
    used = set(index.device_ids)
    return [
        str(device.get("name") or "unknown")
        for device in index.profile.info.get("devices") or ()
        if device.get("device_id") in used
    ]


def _clocks(old: Sequence[ProfileIndex], new: Sequence[ProfileIndex]) -> Iterator[Refusal]:
    for key, title in _CLOCKS.items():
        of_sides = [_clock_of_gpus(side, key) for side in (old, new)]
        for gpu in sorted(of_sides[0].keys() & of_sides[1].keys()):
            # Recordings of one side also differ if a clock changed between them.
            clocks = [*of_sides[0][gpu], *of_sides[1][gpu]]
            ratio = max(clocks) / max(min(clocks), 1)
            if ratio > _MAX_CLOCK_RATIO:
                texts = [_range(side[gpu]) for side in of_sides]
                yield Refusal(
                    "clocks",
                    f"The {title} differs by {(ratio - 1) * 100:.0f} %: {texts[0]} MHz in the old "
                    f"recording, {texts[1]} in the new. Warm up longer, or lock the clocks with "
                    "`nvidia-smi --lock-gpu-clocks`.",
                )
                return


def _clock_of_gpus(side: Sequence[ProfileIndex], key: str) -> dict[str, list[float]]:
    """Return the clocks of each GPU that was used, one per recording."""
    clocks: dict[str, list[float]] = {}
    for index in side:
        used = set(_used_devices(index))
        states: dict[str, Any] = index.profile.info.get("gpu") or {}
        highest: dict[str, float] = {}
        for state in states.values():
            gpus = state.get("gpus") if isinstance(state, dict) else None
            for gpu in gpus if isinstance(gpus, list) else ():
                clock = gpu.get(key) if isinstance(gpu, dict) else None
                if isinstance(clock, int | float) and str(gpu.get("name")) in used:
                    name = str(gpu.get("pci_bus_id") or gpu.get("name"))
                    # Before the code, the GPU is often idle and its clock low.
                    highest[name] = max(highest.get(name, 0), clock)
        for name, clock in highest.items():
            clocks.setdefault(name, []).append(clock)
    return clocks


def _range(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"


def _repeats(both: Sequence[tuple[str, ProfileIndex]]) -> Iterator[Refusal]:
    counts = [(side, repeats_of(index)) for side, index in both]
    few = [(side, count) for side, count in counts if count < MIN_COMPARED]
    # Without repeats, each recording counts as one repeat.
    if few and any(count > 1 for _, count in counts):
        side, count = min(few, key=lambda entry: entry[1])
        yield Refusal(
            "repeats",
            f"The {side} recording has {plural(count, 'repeat')}; a comparison needs at least "
            f"{MIN_COMPARED}, preferably 20.",
        )


def refusals_of_ops(
    pairs: Sequence[Pair],
    names: Sequence[str],
    types: Sequence[str | None],
    measures: tuple[Sequence[OpMeasures], Sequence[OpMeasures]],
    shapes: tuple[Sequence[OpPathShapes], Sequence[OpPathShapes]],
) -> Iterator[Refusal]:
    """Yield the reasons found in matched ops: different numbers of executions or input shapes.

    Parameters
    ----------
    pairs, names
        The paths, and their texts.
    types
        Type of each path of the old side.
    measures
        Measures of the recordings of each side.
    shapes
        Input shapes of each path of each side.
    """
    medians = [_median_counts(side) for side in measures]
    other_counts, other_shapes = [], []
    collections: set[int] = set()  # with what finalizers ran in them
    for number, pair in enumerate(pairs[1:], 1):
        if pair.old is None or pair.new is None:
            continue
        if types[pair.old] == "gc" or pair.parent in collections:
            collections.add(number)
        before, after = medians[0][pair.old], medians[1][pair.new]
        if before != after and before and after and number not in collections:
            other_counts.append((number, before, after))
        shape = shapes[0][pair.old], shapes[1][pair.new]
        if shape[0].differs_from(shape[1]):
            other_shapes.append((number, *shape))
    if other_shapes:
        number, before_shapes, after_shapes = other_shapes[0]
        one = without_backticks(before_shapes.text(after_shapes), 60)
        other = without_backticks(after_shapes.text(before_shapes), 60)
        yield Refusal(
            "shapes",
            f"{plural(len(other_shapes), 'op')} had different input shapes, such as "
            f"{in_backticks(names[number], 60)}: {one} in the old recording, "
            f"{other} in the new.",
        )
    if other_counts:
        number, executions, others = other_counts[0]
        repeated = any(of.count.shape[1] > 1 for side in measures for of in side)
        yield Refusal(
            "counts",
            f"{plural(len(other_counts), 'op')} ran a different number of times, such as "
            f"{in_backticks(names[number], 60)}: {executions:,.0f} in "
            f"{'each repeat of ' if repeated else ''}the old recording, {others:,.0f} in the new.",
        )


def _median_counts(side: Sequence[OpMeasures]) -> IntArray:
    paths = max(len(of_recording.count) for of_recording in side)
    counts = np.zeros((len(side), paths))
    for row, of_recording in zip(counts, side, strict=True):
        row[: len(of_recording.count)] = np.median(of_recording.count, axis=1)
    medians: IntArray = np.rint(np.median(counts, axis=0)).astype(np.int64)
    return medians
