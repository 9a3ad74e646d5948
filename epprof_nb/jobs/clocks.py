"""Clocks of processes: which ones share one, and where profiles begin on the job's clock."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.ranks.ranks_on_one_clock import begins_by_system_clock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from epprof_nb.files.dataset.manifest import Manifest

_SAME_BEGIN_NS = 1_000_000
"""Clocks of one host that began within this time are the same: hosts boot seconds apart."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Begin of a process's profile on the job's clock.

    ``offset_ns`` is added to the profile's times. ``error_ns`` is how far a time can be off against
    the reference clock, None if unknown: then no order with other processes can be stated.
    """

    offset_ns: int
    error_ns: int | None


def placements(manifests: Mapping[int, Manifest | None]) -> dict[int, Placement]:
    """Place the profiles of a job on one clock, on which the first one begins at 0.

    The reference is the clock with which others were compared, else the one that most processes
    have. A process with another clock is placed by its comparison with the reference, whose error
    is known; without one by the system clocks of the two, whose difference is unknown, and so is
    its error.

    Parameters
    ----------
    manifests
        Number of each process to its manifest; None if there is none.

    Examples
    --------
    >>> from epprof_nb.files.dataset.manifest import Manifest
    >>> clock = {"boot_id": "a", "time_namespace": "t", "error_ns": 0}
    >>> of = {r: Manifest(job_id="j", pid=9 + r, parent_pid=1, rank=r, begin_ns=100 + 50 * r,
    ...                   end_ns=900, clock=clock) for r in range(2)}
    >>> placements(of)[1]
    Placement(offset_ns=50, error_ns=0)
    """
    known = {number: m for number, m in manifests.items() if m is not None}
    clocks = _clocks(known)
    compared = {n: clock for n, m in known.items() if (clock := _compared_with(m)) is not None}
    counts = Counter(compared.values()) or Counter(c for c in clocks.values() if c is not None)
    reference = counts.most_common(1)[0][0] if counts else None
    begins: dict[int, int] = {}
    errors: dict[int, int | None] = {}
    for number, manifest in known.items():
        if clocks[number] is not None and clocks[number] == reference:
            begins[number], errors[number] = manifest.begin_ns, manifest.clock.get("error_ns")
        elif number in compared and compared[number] == reference:
            samples = manifest.clock["samples"]
            offset, errors[number] = offset_at(samples, manifest.begin_ns, manifest.end_ns)
            begins[number] = manifest.begin_ns + offset
    # Epoch minus reference clock, by a process that knows both.
    differences = [
        epoch - begin for n, begin in begins.items() if (epoch := _epoch(known[n])) is not None
    ]
    difference = differences[0] if differences else 0
    for number, manifest in known.items():
        if number not in begins and (epoch := _epoch(manifest)) is not None:
            begins[number], errors[number] = epoch - difference, None
    first = min(begins.values(), default=0)
    return {
        number: Placement(begins.get(number, first) - first, errors.get(number))
        for number in manifests
    }


def placed_by_system_clock(infos: Mapping[int, Mapping[str, Any]]) -> dict[int, Placement]:
    """Place profiles of one host without manifests, given the info of each."""
    return {n: Placement(begin, 0) for n, begin in begins_by_system_clock(infos).items()}


def offset_at(
    samples: Sequence[tuple[int, int, int]], begin_ns: int, end_ns: int
) -> tuple[int, int]:
    """Return what to add to times of a profile for another clock, and the error of that.

    A line through the samples with small errors gives the drift of the clocks. The offset is that
    in the middle of the profile, and the error includes the drift until its ends.

    Parameters
    ----------
    samples
        At least one: time, what to add to it for the other clock, and the error of that.
    begin_ns, end_ns
        Begin and end of the profile on the clock of the samples.

    Examples
    --------
    >>> offset_at([(0, 1_000, 5), (100, 1_020, 5)], 0, 100)
    (1010, 15)
    >>> offset_at([(0, 1_000, 5), (100, 9_000, 900)], 0, 100)
    (1000, 5)
    """
    middle = (begin_ns + end_ns) // 2
    least = min(error for _, _, error in samples)
    good = sorted(one for one in samples if one[2] <= 4 * max(least, 1))
    first, last = good[0], good[-1]
    length = last[0] - first[0]
    drift = (last[1] - first[1]) / length if length else 0.0
    offset = first[1] + round(drift * (middle - first[0]))
    until_ends = max(middle - begin_ns, end_ns - middle)
    return offset, max(first[2], last[2]) + round(abs(drift) * until_ends)


def _compared_with(manifest: Manifest) -> tuple[Any, ...] | None:
    """Return the clock that a process compared its own with; None if there is none."""
    reference = manifest.clock.get("reference")
    if not reference or not manifest.clock.get("samples"):
        return None
    return reference.get("boot_id"), reference.get("time_namespace")


def _clocks(manifests: Mapping[int, Manifest]) -> dict[int, tuple[Any, ...] | None]:
    """Return what identifies the clock of each process; None if nothing does."""
    found: dict[int, tuple[Any, ...] | None] = {}
    # Host and begin of the clock on the system clock, where no boot id is known.
    begins: list[tuple[str, int]] = []
    for number, manifest in manifests.items():
        boot_id, epoch = manifest.clock.get("boot_id"), _epoch(manifest)
        if boot_id is not None:
            found[number] = (boot_id, manifest.clock.get("time_namespace"))
        elif epoch is None or not manifest.hostname:
            found[number] = None
        else:
            own = manifest.hostname, epoch - manifest.begin_ns
            same = (b for b in begins if b[0] == own[0] and abs(b[1] - own[1]) < _SAME_BEGIN_NS)
            found[number] = clock = next(same, own)
            begins += [clock] * (clock == own)
    return found


def _epoch(manifest: Manifest) -> int | None:
    """Return when the profile began on the system clock, nanoseconds since 1970."""
    begun = manifest.info.get("started_at_epoch_ns")
    return begun if isinstance(begun, int) else None
