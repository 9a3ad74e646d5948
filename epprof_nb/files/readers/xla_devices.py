"""Device work in the traces of XLA, which JAX writes, and the calls that launched it.

Tracks of processes that are named after devices have the work. The call that launched it is a slice
of the host with the same correlation id.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from epprof_nb.files.readers.device_rows import activity_rows, call_rows
from epprof_nb.files.readers.rows import integer, text

if TYPE_CHECKING:
    from epprof_nb.data.table import Table
    from epprof_nb.files.readers.rows import Budget, Skipped, Threads

_DEVICE = re.compile(r"/device:GPU:(\d{1,4})$")
_OTHER_DEVICE = re.compile(r"/device:(?!GPU:|CPU:)\w{1,40}:\d{1,4}$")
_MAX_OTHERS = 1_024
_STREAM = re.compile(r"Stream #(\d{1,9})\b")
_DETAIL = re.compile(r"(regs|grid|block|size|kind_src|kind_dst):([\w,]+)")
_COPY = re.compile(r"Memcpy([HDP])2([HDP])$")
_SHAPE = ("grid", "block")


class XlaTracks:
    """Processes of a trace that are devices, and threads that are streams, by their names.

    Attributes
    ----------
    devices
        Number of the device by process.
    streams
        Number of the stream by process and thread.
    are_late
        Whether a name followed slices. These were read without it, so the trace must be read again
        with the same tracks.
    others
        Names of devices that are not GPUs. Their slices are ops.
    """

    def __init__(self) -> None:
        self.devices: dict[str, int] = {}
        self.streams: dict[tuple[str, str], int] = {}
        self.are_late = False
        self.others: set[str] = set()

    def notes(self) -> list[str]:
        """Return a note on devices that are not GPUs, if any."""
        if not self.others:
            return []
        names = sorted(self.others)
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        note = (
            f"The slices of {', '.join(names[:3])}{more} are ops, nested as in the trace: only "
            "slices of GPUs become activities with device time."
        )
        return [note]

    def describe(self, event: dict[str, Any], *, follows_slices: bool) -> None:
        """Take the name of a process or thread from a metadata event."""
        args = event.get("args")
        name = text(args.get("name")) if type(args) is dict else None
        process, thread = str(event.get("pid")), str(event.get("tid"))
        if event.get("name") == "process_name" and (found := _DEVICE.match(name or "")):
            self.devices[process] = int(found[1])
        elif event.get("name") == "process_name" and _OTHER_DEVICE.match(name or ""):
            if len(self.others) < _MAX_OTHERS:
                self.others.add(name or "")
            return
        elif event.get("name") == "thread_name" and (found := _STREAM.match(name or "")):
            self.streams[process, thread] = int(found[1])
        else:
            return
        self.are_late |= follows_slices


class XlaDevices:
    """The activities and API calls of a trace while its events are read.

    Each device is a process, and each stream one of its threads. Other threads of a device repeat
    the work of its streams, by module or by step.
    """

    def __init__(
        self, tracks: XlaTracks, threads: Threads, budget: Budget, skipped: Skipped
    ) -> None:
        self._tracks, self._threads, self._skipped = tracks, threads, skipped
        self._has_slices = False
        self._rows = activity_rows(budget)
        self._calls = call_rows(budget)

    def describe(self, event: dict[str, Any]) -> None:
        """Take the name of a process or thread from a metadata event."""
        self._tracks.describe(event, follows_slices=self._has_slices)

    def add(self, event: dict[str, Any], start: int, end: int) -> bool:
        """Add a slice of a device, or a call that launches its work; return whether it is one."""
        self._has_slices = True
        if not self._tracks.devices:
            return False
        process, thread = str(event.get("pid")), str(event.get("tid"))
        device = self._tracks.devices.get(process)
        if device is None:
            return self._add_call(event, start, end)
        stream = self._tracks.streams.get((process, thread))
        if stream is None:
            self._skipped.add("of a device that repeat slices of its streams")
            return True
        args = event.get("args")
        args = args if type(args) is dict else {}
        name = text(event.get("name"))
        details = _details(args)
        kind, direction = ("kernel", None) if "kernel_details" in args else _kind(name)
        graph = integer(args.get("cuda_graph_id")) or None
        shape = [number for key in _SHAPE for number in _numbers(details.get(key))]
        self._rows.append(
            kind, name, device, integer(str(args.get("context_id", "")).lstrip("$")), stream,
            start, end, integer(args.get("correlation_id")), integer(details.get("size")),
            direction, details.get("kind_src"), details.get("kind_dst"), *shape,
            integer(details.get("regs")), graph,
            integer(args.get("cuda_graph_node_id")) if graph else None,
        )  # fmt: skip
        return True

    def _add_call(self, event: dict[str, Any], start: int, end: int) -> bool:
        args = event.get("args")
        correlation = integer(args.get("correlation_id")) if type(args) is dict else None
        if correlation is None:
            return False
        thread = self._threads(event.get("pid"), event.get("tid"))
        self._calls.append("driver", text(event.get("name")), thread, start, end, correlation)
        return True

    @property
    def tables(self) -> dict[str, Table]:
        """The activities and the API calls."""
        return {"activities": self._rows.table(), "api_calls": self._calls.table()}

    @property
    def devices(self) -> list[dict[str, Any]]:
        """Entries of ``info["devices"]``."""
        numbers = sorted(set(self._tracks.devices.values()))
        return [{"device_id": n, "name": None, "kind": "gpu"} for n in numbers]


def _details(args: dict[str, Any]) -> dict[str, str]:
    texts = (text(args.get(key)) for key in ("kernel_details", "memcpy_details", "memset_details"))
    return dict(_DETAIL.findall(" ".join(part for part in texts if part)))


def _kind(name: str | None) -> tuple[str, str | None]:
    """Return the kind of an activity by its name, and the direction of a copy."""
    if found := _COPY.match(name or ""):
        return "memcpy", f"{found[1]}to{found[2]}"
    if name and name.lower().startswith(("memcpy", "memset")):
        return name[:6].lower(), None
    return "kernel", None


def _numbers(dimensions: str | None) -> list[int | None]:
    numbers = [integer(part) for part in (dimensions or "").split(",")]
    return numbers if len(numbers) == 3 else [None, None, None]
