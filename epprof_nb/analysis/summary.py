"""Summary: the line of numbers above every view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.device_work import KERNEL, MEMCPY, MEMSET
from epprof_nb.analysis.devices import device_name
from epprof_nb.analysis.idle import IDLE_GAP_NS, long_gaps
from epprof_nb.analysis.index import ProfileIndex
from epprof_nb.util.format import duration, percent, plural, size

if TYPE_CHECKING:
    import pandas as pd

    from epprof_nb.data.profile_data import ProfileData

_MAX_GAPS = 1_000
_MAX_OVERHEAD_SHARE = 0.25
"""A larger overhead is stated as a time; as a share of a short cell it means little."""


@dataclass(frozen=True, slots=True)
class Busy:
    """Busy time of one device; ``share`` is its part of the wall time, 0 to 1."""

    device_id: int
    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Summary:
    """The numbers of the summary line.

    ``gaps`` is the number of idle gaps (`epprof_nb.analysis.idle`) and ``longest_gaps`` has the
    start and end (ns) of up to a thousand of them, in the order of time. ``recorded`` is the
    share of launches whose activity was recorded, and ``overhead`` the profiler's own time as a
    share of the wall time; both are None if unknown.
    """

    wall_ns: int
    device_word: str
    busy: tuple[Busy, ...]
    kernels: int
    copies: int
    copy_bytes: int
    memsets: int
    gaps: int
    longest_gaps: tuple[tuple[int, int], ...]
    recorded: float | None
    dropped: int
    overhead: float | None
    overhead_ns: int
    unattributed: int
    error: str | None

    @property
    def counted(self) -> list[tuple[str, str]]:
        """Numbers that are not 0, as (kind of activity or ``gaps``, text)."""
        parts = []
        if self.kernels:
            parts.append(("kernel", plural(self.kernels, "kernel")))
        if self.copies:
            text = f"{plural(self.copies, 'copy', 'copies')} ({size(self.copy_bytes)})"
            parts.append(("memcpy", text))
        if self.memsets:
            parts.append(("memset", plural(self.memsets, "memset")))
        if self.gaps:
            threshold = f"{IDLE_GAP_NS / 1e6:g} ms"
            parts.append(("gaps", f"{plural(self.gaps, 'idle gap')} > {threshold}"))
        return parts

    @property
    def counts(self) -> str:
        """The same as text: ``4,212 kernels · 36 copies (1.20 GB)``."""
        return " · ".join(text for _, text in self.counted)

    @property
    def data_quality_text(self) -> str:
        """How complete the profile is: ``recorded 100 %, profiler overhead 4 %``."""
        return ", ".join(part for part in (self.recording_text, self.unattributed_text) if part)

    @property
    def unattributed_text(self) -> str:
        """Number of activities without an op; empty if there are none."""
        if not self.unattributed:
            return ""
        return f"{plural(self.unattributed, 'activity', 'activities')} without an op"

    @property
    def recording_text(self) -> str:
        """The parts of `data_quality_text` about recording and the profiler's overhead."""
        parts = []
        if self.recorded is not None:
            dropped = f" ({plural(self.dropped, 'record')} dropped)" if self.dropped else ""
            share = percent(self.recorded) if not self.dropped else f"{self.recorded * 100:.1f} %"
            parts.append(f"recorded {share}{dropped}")
        if self.overhead is not None:
            is_share = self.overhead <= _MAX_OVERHEAD_SHARE
            amount = percent(self.overhead) if is_share else duration(self.overhead_ns)
            parts.append(f"profiler overhead {amount}")
        return ", ".join(parts)

    @property
    def line(self) -> str:
        """The summary as one line of text.

        For example ``1.84 s wall   GPU busy 61 %   4,212 kernels   recorded 100 %``.
        """
        parts = [f"{duration(self.wall_ns)} wall"]
        for busy in self.busy:
            number = f" {busy.device_id}" if len(self.busy) > 1 else ""
            parts.append(f"{self.device_word}{number} busy {percent(busy.share)}")
        parts += [self.counts or self.empty or "", self.data_quality_text]
        return "   ".join(part for part in parts if part)

    @property
    def empty(self) -> str | None:
        """Explanation of a profile without device work; else None."""
        if self.kernels or self.copies or self.memsets:
            return None
        if self.device_word == "GPU":
            return "No GPU work was launched in this cell. (Host ops are shown.)"
        return "No GPU was found: run epprof doctor to see why. (Host ops are shown.)"


def device_word(info: dict[str, Any]) -> str:
    """Return ``GPU`` if a CUDA device was profiled, else ``device``: the host device is no GPU."""
    kinds = {d.get("kind") for d in info.get("devices") or () if isinstance(d, dict)}
    return "GPU" if "cuda" in kinds else "device"


def wall_of(profile: ProfileData) -> int:
    """Return the profile's length, ns: as recorded, else from its first to its last event."""
    if profile.wall_ns > 0:
        return profile.wall_ns
    ends = [int(t["end_ns"].max()) for t in _timed(profile)]
    starts = [int(t["start_ns"].min()) for t in _timed(profile)]
    return max(ends) - min(starts) if ends else 0


def _timed(profile: ProfileData) -> list[Any]:
    tables = (profile.tables[name] for name in ("ops", "activities", "api_calls"))
    return [table for table in tables if len(table)]


def _recorded(info: dict[str, Any]) -> tuple[float | None, int]:
    """Return the share of launches whose activity was recorded, and the dropped records."""
    recorded = info.get("recorded") or {}
    launched, dropped = _total(recorded.get("launched")), _total(recorded.get("lost"))
    if not launched and not dropped:
        return None, 0
    return 1 - dropped / max(launched, dropped), dropped


def _total(counts: object) -> int:
    """Return the sum of numbers by kind; a plain number is its own sum."""
    if isinstance(counts, Mapping):
        return sum(_total(count) for count in counts.values())
    return int(counts) if isinstance(counts, int | float) else 0


def _busy(index: ProfileIndex, wall_ns: int) -> tuple[Busy, ...]:
    result = []
    for device in index.device_ids:
        if device >= 0:
            starts, ends = index.busy(device)
            share = float((ends - starts).sum()) / wall_ns if wall_ns else 0.0
            name = device_name(index.profile.info, device)
            result.append(Busy(device, name, min(share, 1.0)))
    return tuple(result)


def _longest(gaps: pd.DataFrame) -> tuple[tuple[int, int], ...]:
    longest = gaps.nlargest(_MAX_GAPS, "duration_ns").sort_values("start_ns")
    return tuple(zip(longest["start_ns"].tolist(), longest["end_ns"].tolist(), strict=True))


def summarise(index: ProfileIndex) -> Summary:
    """Compute the numbers of the summary line."""
    profile = index.profile
    gaps = index.cached(long_gaps)
    gaps = gaps[gaps["position"] == "between"]
    is_copy = index.kinds == MEMCPY
    cost = profile.info.get("profiling_cost") or {}
    overhead = cost.get("share")
    recorded, dropped = _recorded(profile.info)
    wall = wall_of(profile)
    error = profile.info.get("error")
    sizes = profile.tables["activities"]["bytes"][is_copy]
    return Summary(
        wall_ns=wall,
        device_word=device_word(profile.info),
        busy=_busy(index, wall),
        kernels=int((index.kinds == KERNEL).sum()),
        copies=int(is_copy.sum()),
        copy_bytes=int(np.maximum(sizes, 0).sum()),
        memsets=int((index.kinds == MEMSET).sum()),
        gaps=len(gaps),
        longest_gaps=_longest(gaps),
        recorded=recorded,
        dropped=dropped,
        overhead=None if overhead is None else float(overhead),
        overhead_ns=int(cost.get("ns", 0)),
        unattributed=_total((profile.info.get("attribution") or {}).get("none")),
        error=None if error is None else str(error),
    )


def summary_line(profile: ProfileData) -> str:
    """Return the summary as one line of text; see `Summary.line`."""
    return summarise(ProfileIndex(profile)).line
