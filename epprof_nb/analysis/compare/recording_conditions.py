"""Conditions of recordings: by how much other processes, and the GPU's state, slowed them down.

A busy machine slows a recording by an unknown amount. Measurements during the recording give an
upper bound. The true ratio of two sides lies between two values: the measured ratio corrected for
the slowdown of the new side, and corrected for the slowdown of the old side. Recordings whose
repeats alternated had the same conditions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import used_gpu
from epprof_nb.analysis.base.processor_use import load_of, waits
from epprof_nb.util.format import percent, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.compare.node_recording import NodeRecording
    from epprof_nb.analysis.compare.spread_between_recordings import Place

_SHARED = 0.5
"""Logarithm of the slowdown if other processes keep all other cores busy: cores share memory
bandwidth, caches and clocks. On two cores, array copies showed up to 0.55 and Python loops 0.4."""
_SHARED_GPU = math.log(2)
"""Logarithm of the slowdown by one more process on a GPU, because processes take turns."""
_LONGEST = 0.99
"""Maximum share of the time that counts as a delay."""
NOTABLE = 0.02
"""Minimum bound of conditions that the reason names."""


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Bounds of the logarithm of a slowdown, by kind of time."""

    total: float = 0.0
    device: float = 0.0
    host: float = 0.0

    def of(self, place: Place) -> float:
        """Return the bound of one kind of time."""
        value: float = getattr(self, place)
        return value


@dataclass(frozen=True, slots=True)
class Conditions:
    """Bounds of the slowdowns of both sides, and the measurements as text.

    Attributes
    ----------
    old, new
        The bounds.
    texts
        Measurements while the old and the new side were recorded; empty if nothing was notable.
    """

    old: Slowdown = Slowdown()
    new: Slowdown = Slowdown()
    texts: tuple[str, str] = ("", "")

    def bounds(self, places: Sequence[Place]) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of both sides for some quantities, as float64 arrays."""
        old, new = (np.array([s.of(p) for p in places], float) for s in (self.old, self.new))
        return old, new

    @property
    def is_notable(self) -> bool:
        """Whether the elapsed time of a side may be longer by a notable share."""
        return max(self.old.total, self.new.total) >= NOTABLE


def with_node_recording(under: Conditions, nodes: NodeRecording) -> Conditions:
    """Return the conditions with the cost of recording the nodes of ONNX Runtime's runs."""
    sides = [
        Slowdown(side.total + cost.total, side.device, side.host + cost.host)
        for side, cost in zip((under.old, under.new), nodes.costs, strict=True)
    ]
    texts = [
        " and ".join(filter(None, both)) for both in zip(under.texts, nodes.texts, strict=True)
    ]
    return Conditions(sides[0], sides[1], (texts[0], texts[1]))


def conditions(
    old: Sequence[ProfileIndex], new: Sequence[ProfileIndex], *, tell_spread: bool
) -> Conditions:
    """Return the conditions of two sides that did not alternate.

    Parameters
    ----------
    old, new
        The recordings.
    tell_spread
        Whether each side has enough recordings to estimate their spread. The spread then includes
        the conditions that both sides share, and only the difference remains.
    """
    fastest = max((_mhz(index) or 0 for index in (*old, *new)), default=0)
    fewest = min((_gpu_processes(index) for index in (*old, *new)), default=0)
    sides = [_mean([_slowdown(index, fastest, fewest) for index in side]) for side in (old, new)]
    if tell_spread:
        sides = [_beyond(*sides), _beyond(*reversed(sides))]
    texts = _text(old, fastest, fewest), _text(new, fastest, fewest)
    return Conditions(sides[0], sides[1], texts)


def _slowdown(index: ProfileIndex, fastest: float, fewest: int) -> Slowdown:
    host = slowdown_of_host(index)
    mhz = _mhz(index)
    if mhz:
        host += math.log(fastest / mhz)
    if not used_gpu(index):
        return Slowdown(host, host, host)
    device = _SHARED_GPU if _gpu_processes(index) > fewest else 0.0
    # Slower host code prolongs only the time in which the GPU waits for the host.
    busy = _busy_share(index)
    total = math.log(busy * math.exp(device) + (1 - busy) * math.exp(host))
    return Slowdown(total, device, host)


def slowdown_of_host(index: ProfileIndex) -> float:
    """Return the bound of the logarithm of the slowdown by other processes on the host."""
    load = load_of(index.profile.info)
    others = load.get("other_cores", 0.0)
    kept_waiting = waits(load)[1] + load.get("stolen_cores", 0.0)
    running = load.get("own_cores", 0.0) + kept_waiting
    if running <= 0:
        return 0.0
    delayed = min(kept_waiting / max(running, 1.0), _LONGEST)
    shared = min(others / max(load.get("cores", 1), 1), 1.0) * min(running, 1.0)
    return -math.log1p(-delayed) + _SHARED * shared


def _mean(slowdowns: Sequence[Slowdown]) -> Slowdown:
    values = np.mean([(s.total, s.device, s.host) for s in slowdowns], axis=0)
    return Slowdown(*values.tolist())


def _beyond(one: Slowdown, other: Slowdown) -> Slowdown:
    return Slowdown(
        max(one.total - other.total, 0.0),
        max(one.device - other.device, 0.0),
        max(one.host - other.host, 0.0),
    )


def _text(side: Sequence[ProfileIndex], fastest: float, fewest: int) -> str:
    """Return the measurements during the recording of a side as text."""
    loads = [load_of(index.profile.info) for index in side]
    parts = []
    others = [load["other_cores"] for load in loads if "other_cores" in load]
    if others:
        cores = max(int(load.get("cores", 1)) for load in loads)
        parts.append(f"other processes used {np.mean(others):.1f} of {plural(cores, 'core')}")
    for name, text in (
        ("waiting", "it waited for a core in {} of its time"),
        ("stolen_cores", "the hypervisor took {} of a core"),
    ):
        mean = np.mean([load.get(name, 0.0) for load in loads])
        if mean >= NOTABLE:
            parts.append(text.format(percent(float(mean))))
    slowest = min((_mhz(index) or fastest for index in side), default=fastest)
    if slowest * (1 + NOTABLE) < fastest:
        parts.append(f"the core ran at {slowest:,.0f} instead of {fastest:,.0f} MHz")
    processes = max(_gpu_processes(index) for index in side)
    if processes > fewest:
        parts.append(f"{plural(processes - fewest, 'further process')} used the GPU")
    return " and ".join(", ".join(parts).rsplit(", ", 1))


def _mhz(index: ProfileIndex) -> float | None:
    """Return the frequency of the core; at the beginning, it may still have been idle."""
    load = index.profile.info.get("load")
    values = load.get("cpu_mhz") if isinstance(load, dict) else None
    known = [v for v in values if isinstance(v, int | float) and 0 < v < math.inf] if isinstance(
        values, list
    ) else []  # fmt: skip
    return max(known, default=None)


def _busy_share(index: ProfileIndex) -> float:
    """Return the share of the recording in which a device was busy."""
    starts, ends = index.busy()
    return min(int((ends - starts).sum()) / max(index.profile.wall_ns, 1), 1.0)


def _gpu_processes(index: ProfileIndex) -> int:
    """Return how many processes used the GPUs at the end."""
    state = (index.profile.info.get("gpu") or {}).get("after")
    gpus = state.get("gpus") if isinstance(state, dict) else None
    count = 0
    for gpu in gpus if isinstance(gpus, list) else ():
        if isinstance(gpu, dict):
            others, unseen = gpu.get("other_processes"), gpu.get("unseen_processes")
            count += len(others) if isinstance(others, list) else 0
            count += unseen if isinstance(unseen, int) else 0
    return count
