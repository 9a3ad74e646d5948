"""Load of the host during a profile: the time that other processes took, and waits for a core.

It shows whether code was slow because the machine was busy. All values are read from ``/proc`` at
the beginning and the end. Values that a system does not provide are omitted.
"""

from __future__ import annotations

import os
import resource
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

_SYSTEM_CPU = "/proc/stat"
_PRESSURE = "/proc/pressure/cpu"
_LOAD = "/proc/loadavg"
_THREADS = "/proc/self/task"
_LAST_CORE = "/proc/thread-self/stat"
_FREQUENCY = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq"
_CGROUP = "/sys/fs/cgroup/cpu.stat"
_MAX_BYTES = 1 << 16
_MAX_THREADS = 64
"""Maximum number of threads whose waits are read. Each takes 5 us."""
_IDLE, _IO_WAIT, _STEAL = 3, 4, 7
"""Columns of ``/proc/stat``."""
_COUNTED = 8
"""Number of columns that add up to the time of all cores; the first two include guests."""


@dataclass(frozen=True, slots=True)
class HostReading:
    """State of the host at one moment.

    Attributes
    ----------
    time_ns
        CLOCK_MONOTONIC.
    cpu_ns
        CPU time of this process.
    switches
        Voluntary and involuntary context switches of this process.
    busy_ns, stolen_ns
        Time in which the cores were busy, and in which the hypervisor took them; None if unknown.
    pressure_ns
        Time in which a process waited for a core; None if unknown.
    throttled_ns
        Time in which the limit of the control group stopped processes; None if unknown.
    waits_ns
        Time that each thread of this process has waited for a core, by its number.
    load_average, cpu_mhz
        Load average over a minute, and frequency of the core; None if unknown.
    cost_ns
        Time to read all this.
    """

    time_ns: int
    cpu_ns: int
    switches: tuple[int, int]
    busy_ns: int | None = None
    stolen_ns: int | None = None
    pressure_ns: int | None = None
    throttled_ns: int | None = None
    waits_ns: dict[str, int] = field(default_factory=dict)
    load_average: float | None = None
    cpu_mhz: float | None = None
    cost_ns: int = 0


def read() -> HostReading:
    """Read the state of the host. Never raises."""
    begin = time.monotonic_ns()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    busy_ns, stolen_ns = _system_cpu()
    known: dict[str, Any] = {
        "busy_ns": busy_ns,
        "stolen_ns": stolen_ns,
        "pressure_ns": _scaled(_number_after(_PRESSURE, "total="), 1000),
        "throttled_ns": _scaled(_number_after(_CGROUP, "throttled_usec "), 1000),
        "waits_ns": _waits(),
        "load_average": _load_average(),
        "cpu_mhz": _cpu_mhz(),
    }
    return HostReading(
        begin,
        time.process_time_ns(),
        (usage.ru_nvcsw, usage.ru_nivcsw),
        **known,
        cost_ns=time.monotonic_ns() - begin,
    )


@dataclass(frozen=True, slots=True)
class WaitReading:
    """Times of this process up to one moment.

    Attributes
    ----------
    cpu_ns
        CPU time.
    waits_ns
        Time that each thread has waited for a core, by its number.
    """

    cpu_ns: int
    waits_ns: dict[str, int]


def read_waits() -> WaitReading:
    """Return the CPU time and the waits of this process. Never raises."""
    return WaitReading(time.process_time_ns(), _waits())


def waited(begin: WaitReading, end: WaitReading) -> int:
    """Return how long threads waited for a core between two readings; 0 if unknown."""
    return _waited(begin.waits_ns, end.waits_ns) or 0


def waited_between(begin: WaitReading, end: WaitReading, duration_ns: int) -> int:
    """Return how long code waited for a core between two readings; 0 if unknown.

    `duration_ns` is the time between both. Waits of several threads may overlap, so the result is
    at most the time in which the process used no core.
    """
    unused_ns = duration_ns - (end.cpu_ns - begin.cpu_ns)
    return max(min(waited(begin, end), unused_ns), 0)


def between(begin: HostReading, end: HostReading) -> dict[str, Any]:
    """Return the load between two readings, as stored in ``info["load"]``.

    Returns
    -------
    dict
        ``cores`` (int) of the machine; ``own_cores`` and ``other_cores`` (float): how many cores
        this process and all others used on average; ``stolen_cores``: how many the hypervisor took;
        ``waiting``: the time in which threads of this process waited for a core, as a share of the
        time in which they ran or waited; ``pressure``: share of the time in which some process
        waited for a core; ``throttled``: share of the time in which the limit of the control group
        stopped processes; ``voluntary_switches`` and ``involuntary_switches`` (int);
        ``load_average`` (list of float, over a minute, at the begin and end), ``cpu_mhz``
        (likewise, of the core in use), and ``read_ns`` (int): the time to read all this. Values
        that the system does not provide are omitted.
    """
    wall = max(end.time_ns - begin.time_ns, 1)
    own = max(end.cpu_ns - begin.cpu_ns, 0)
    cores = os.cpu_count() or 1
    load: dict[str, Any] = {"cores": cores, "own_cores": own / wall}
    if begin.busy_ns is not None and end.busy_ns is not None:
        others = max(end.busy_ns - begin.busy_ns - own, 0) / wall
        load["other_cores"] = min(others, cores)  # a tick of 10 ms may be longer than the wall time
    waits_ns = _waited(begin.waits_ns, end.waits_ns)
    if waits_ns is not None:
        load["waiting"] = waits_ns / max(waits_ns + own, 1)
    for name, before, after in (
        ("stolen_cores", begin.stolen_ns, end.stolen_ns),
        ("pressure", begin.pressure_ns, end.pressure_ns),
        ("throttled", begin.throttled_ns, end.throttled_ns),
    ):
        if before is not None and after is not None:
            load[name] = max(after - before, 0) / wall
    if "pressure" in load:  # the system reads its clock at another moment
        load["pressure"] = min(load["pressure"], 1.0)
    for number, name in enumerate(("voluntary_switches", "involuntary_switches")):
        load[name] = max(end.switches[number] - begin.switches[number], 0)
    for name in ("load_average", "cpu_mhz"):
        values = [getattr(reading, name) for reading in (begin, end)]
        if None not in values:
            load[name] = values
    load["read_ns"] = begin.cost_ns + end.cost_ns
    return load


def _system_cpu() -> tuple[int, int] | tuple[None, None]:
    """Return the busy time and the stolen time of the cores; None if not counted."""
    try:
        first = _read(_SYSTEM_CPU).split("\n", 1)[0].split()
        ticks = [int(text) for text in first[1 : 1 + _COUNTED]]
        tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")
        stolen = ticks[_STEAL]
        busy = sum(ticks) - ticks[_IDLE] - ticks[_IO_WAIT] - stolen
    except (OSError, ValueError, IndexError):
        return None, None
    return (busy * tick_ns, stolen * tick_ns) if sum(ticks) else (None, None)


def _waits() -> dict[str, int]:
    """Return the time that each thread has waited for a core."""
    waits: dict[str, int] = {}
    with suppress(OSError), os.scandir(_THREADS) as threads:
        for thread in islice(threads, _MAX_THREADS):
            # A thread may end in between.
            with suppress(OSError, ValueError, IndexError):
                waits[thread.name] = int(_read(f"{thread.path}/schedstat").split()[1])
    return waits


def _waited(begin: dict[str, int], end: dict[str, int]) -> int | None:
    """Return the waiting time of all threads between two readings; None if unknown."""
    if not end:
        return None
    return sum(max(waited - begin.get(thread, 0), 0) for thread, waited in end.items())


def _load_average() -> float | None:
    with suppress(OSError, ValueError, IndexError):
        return float(_read(_LOAD).split()[0])
    return None


def _cpu_mhz() -> float | None:
    with suppress(OSError, ValueError, IndexError):
        # The name of the thread, in parentheses, may contain spaces.
        core = int(_read(_LAST_CORE).rsplit(")", 1)[1].split()[36])
        return int(_read(_FREQUENCY.format(core))) / 1000
    return None


def _number_after(path: str, label: str) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        return int(_read(path).split(label, 1)[1].split(None, 1)[0])
    return None


def _scaled(value: int | None, factor: int) -> int | None:
    return None if value is None else value * factor


def _read(path: str) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _MAX_BYTES).decode(errors="replace")
    finally:
        os.close(descriptor)
