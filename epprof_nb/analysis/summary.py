"""The one line of numbers above every view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis import idle
from epprof_nb.analysis.device_work import KERNEL, MEMCPY, MEMSET, kind_codes
from epprof_nb.analysis.devices import device_names
from epprof_nb.analysis.index import Shared
from epprof_nb.arrays.ids import unique_values
from epprof_nb.util.format import duration, percent, plural, size

if TYPE_CHECKING:
    import pandas as pd

    from epprof_nb.data.profile_data import ProfileData

IDLE_GAP_NS = 1_000_000
"""The shortest idle gap worth a word."""


@dataclass(frozen=True, slots=True)
class Busy:
    """How busy one device was: ``share`` of the wall time, 0 to 1."""

    device_id: int
    name: str
    share: float


_GAPS = 1_000
_TELLING_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Summary:
    """The numbers of the summary line.

    ``recorded`` is the share of launches whose activity was recorded, None where it is not
    known; ``longest_gaps`` are start and end (ns) of the idle gaps in the order of time, at most a
    thousand; ``cost`` the profiler's own time as a share of the wall time, None likewise.
    """

    wall_ns: int
    device_word: str
    busy: tuple[Busy, ...]
    kernels: int
    copies: int
    copy_bytes: int
    sets: int
    gaps: int
    longest_gaps: tuple[tuple[int, int], ...]
    recorded: float | None
    lost: int
    cost: float | None
    cost_ns: int
    unattributed: int
    error: str | None

    @property
    def counted(self) -> list[tuple[str, str]]:
        """What the device did, as (kind of activity or ``gaps``, text); only what occurred."""
        parts = []
        if self.kernels:
            parts.append(("kernel", plural(self.kernels, "kernel")))
        if self.copies:
            text = f"{plural(self.copies, 'copy', 'copies')} ({size(self.copy_bytes)})"
            parts.append(("memcpy", text))
        if self.sets:
            parts.append(("memset", plural(self.sets, "set")))
        if self.gaps:
            parts.append(("gaps", f"{plural(self.gaps, 'idle gap')} > 1 ms"))
        return parts

    @property
    def counts(self) -> str:
        """What the device did, as ``4,212 kernels · 36 copies (1.20 GB)``."""
        return " · ".join(text for _, text in self.counted)

    @property
    def quality(self) -> str:
        """How far the numbers can be trusted, as ``recorded 100 %, +4 % profiling cost``."""
        return ", ".join(part for part in (self.trust, self.stray) if part)

    @property
    def stray(self) -> str:
        """How many activities have no op, in words; empty where all have one."""
        return f"{self.unattributed:,} without an op" if self.unattributed else ""

    @property
    def trust(self) -> str:
        """What `quality` says of recording and its cost."""
        parts = []
        if self.recorded is not None:
            lost = f" ({plural(self.lost, 'record')} lost)" if self.lost else ""
            share = percent(self.recorded) if not self.lost else f"{self.recorded:.1%}"
            parts.append(f"recorded {share.replace('%', ' %').replace('  ', ' ')}{lost}")
        if self.cost is not None:
            # A short cell's share would be thousands of per cent: the time itself says more.
            told = percent(self.cost) if self.cost <= _TELLING_SHARE else duration(self.cost_ns)
            parts.append(f"+{told} profiling cost")
        return ", ".join(parts)

    @property
    def line(self) -> str:
        """All of it as one line of text.

        As ``1.84 s wall   GPU busy 61 %   4,212 kernels · 36 copies (1.20 GB)   recorded 100 %``.
        """
        parts = [f"{duration(self.wall_ns)} wall"]
        for busy in self.busy:
            number = f" {busy.device_id}" if len(self.busy) > 1 else ""
            parts.append(f"{self.device_word}{number} busy {percent(busy.share)}")
        parts += [self.counts or self.empty or "", self.quality]
        return "   ".join(part for part in parts if part)

    @property
    def empty(self) -> str | None:
        """Why there is nothing to see, where there is nothing; else None."""
        if self.kernels or self.copies or self.sets:
            return None
        word = "GPU" if self.device_word == "GPU" else "device"
        return f"No {word} work was launched in this cell. (Host ops are shown.)"


def device_word(info: dict[str, Any]) -> str:
    """``GPU`` where a CUDA device was profiled, else ``device``: the host device is no GPU."""
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
    """Return the share of launches recorded, and how many were lost."""
    recorded = info.get("recorded") or {}
    launched, lost = _total(recorded.get("launched")), _total(recorded.get("lost"))
    if not launched and not lost:
        return None, 0
    return 1 - lost / max(launched, lost), lost


def _total(counts: object) -> int:
    """Return the sum of numbers by kind; a number alone is its own sum."""
    if isinstance(counts, Mapping):
        return sum(_total(count) for count in counts.values())
    return int(counts) if isinstance(counts, int | float) else 0


def _busy(profile: ProfileData, shared: Shared, wall_ns: int) -> tuple[Busy, ...]:
    names = device_names(profile.info)
    devices = unique_values(profile.tables["activities"]["device_id"])
    result = []
    for device in [d for d in devices if d >= 0]:
        starts, ends = shared.busy(device)
        share = float((ends - starts).sum()) / wall_ns if wall_ns else 0.0
        result.append(Busy(device, names.get(device, f"device {device}"), min(share, 1.0)))
    return tuple(result)


def _longest(gaps: pd.DataFrame) -> tuple[tuple[int, int], ...]:
    kept = gaps.nlargest(_GAPS, "duration_ns").sort_values("start_ns")
    return tuple(zip(kept["start_ns"].tolist(), kept["end_ns"].tolist(), strict=True))


def summarise(
    profile: ProfileData, *, shared: Shared | None = None, gaps: pd.DataFrame | None = None
) -> Summary:
    """Compute the numbers of the summary line; `gaps` are those of `IDLE_GAP_NS`, where known."""
    shared = shared or Shared(profile)
    if gaps is None:
        gaps = idle.gaps(profile, IDLE_GAP_NS, shared=shared)
    gaps = gaps[gaps["position"] == "between"]
    kinds = kind_codes(profile)
    activities = profile.tables["activities"]
    copies = kinds == MEMCPY
    costs = profile.info.get("profiling_cost") or {}
    cost = costs.get("share")
    recorded, lost = _recorded(profile.info)
    wall = wall_of(profile)
    error = profile.info.get("error")
    return Summary(
        wall_ns=wall,
        device_word=device_word(profile.info),
        busy=_busy(profile, shared, wall),
        kernels=int((kinds == KERNEL).sum()),
        copies=int(copies.sum()),
        copy_bytes=int(np.maximum(activities["bytes"][copies], 0).sum()),
        sets=int((kinds == MEMSET).sum()),
        gaps=len(gaps),
        longest_gaps=_longest(gaps),
        recorded=recorded,
        lost=lost,
        cost=None if cost is None else float(cost),
        cost_ns=int(costs.get("ns", 0)),
        unattributed=_total((profile.info.get("attribution") or {}).get("none")),
        error=None if error is None else str(error),
    )


def summary_line(profile: ProfileData) -> str:
    """Return the summary as one line of text; see `Summary.line`."""
    return summarise(profile).line
