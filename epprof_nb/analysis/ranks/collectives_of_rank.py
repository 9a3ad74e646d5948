"""Collectives of one rank: kernels of NCCL and RCCL, and calls that communicate on the host.

NCCL's kernels do not say what they transfer, but the calls around their launches do, in payloads of
NVTX: the communicator and the size. A group of calls is launched at its end, so that the kernels
follow their calls; a kernel may then serve several of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.analysis.base.processor_use import load_of, waits
from epprof_nb.analysis.ranks.collective_kinds import (
    CALL,
    KINDS,
    UNKNOWN,
    WAIT,
    kind_of_call,
    kind_of_kernel,
)
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import arguments
from epprof_nb.data.schema import MISSING_DELTA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from epprof_nb.analysis.base.index import ProfileIndex

NCCL_COMMUNICATOR = "NCCL communicator ID"
ARGUMENTS = (
    NCCL_COMMUNICATOR, "communicator", "Message size [bytes]", "bytes", "Peer rank", "Peer",
    "ranks", "number", "collective",
)  # fmt: skip
"""Arguments of the ops of collectives: the communicator, numbers, and the kind in traces."""
POINT_TO_POINT = frozenset({"send", "receive", "send_receive"})
_HOST = "host"
NOT_ENDED = MISSING_DELTA
"""End of a collective of which only the start is known."""


@dataclass(slots=True)
class Collective:
    """One collective of a rank; times are on the clock of its profile.

    Attributes
    ----------
    kind, communicator, size, number, ranks
        The kind, the communicator (None if unknown), bytes, the number in the communicator from its
        creation on, and the number of its ranks; `MISSING` if unknown.
    start_ns, end_ns
        Arrival and end; the end is `NOT_ENDED` if unknown.
    blocked_ns
        Time from which the stream or the host only waited for it; `NOT_ENDED` if it did not.
    issued_ns, thread_id, op_id
        Time and thread of the call, and its op; `MISSING` for none.
    stream
        What orders it among those without a communicator: its stream, the replays of graphs, or
        the host.
    """

    kind: str
    start_ns: int
    end_ns: int
    issued_ns: int
    thread_id: int
    op_id: int
    stream: str
    communicator: str | None = None
    size: int = MISSING
    number: int = MISSING
    ranks: int = MISSING
    blocked_ns: int = NOT_ENDED

    @property
    def on_device(self) -> bool:
        """Whether it is a kernel."""
        return self.stream != _HOST


class _Call(NamedTuple):
    kind: str
    communicator: str
    size: int
    peer: int
    ranks: int = MISSING


class RankFacts(NamedTuple):
    """Small facts of a rank that comparisons with others need, without its tables.

    Attributes
    ----------
    collectives
        Its collectives, by start.
    waiting_cores
        Number of cores for which its threads waited on average, as far as the system says.
    """

    collectives: list[Collective]
    waiting_cores: float


def facts_of(index: ProfileIndex) -> RankFacts:
    """Return the facts of a profile."""
    return RankFacts(collectives_of(index), waits(load_of(index.profile.info))[0])


def collectives_of(index: ProfileIndex) -> list[Collective]:
    """Return the collectives of a profile by start."""
    found = [*_kernels(index), *host_calls(index)]
    return sorted(found, key=lambda collective: collective.start_ns)


def _kernels(index: ProfileIndex) -> list[Collective]:
    activities, calls = (index.profile.tables[name] for name in ("activities", "api_calls"))
    names = activities.names("name")
    kinds = [kind_of_kernel(name) for name in names.categories]
    is_collective = np.array([kind is not None for kind in kinds] + [False])[names.codes]
    rows = np.flatnonzero(is_collective & index.is_device_work)
    if not len(rows):
        return []
    call = index.calls.rows(activities["correlation_id"][rows])
    issued = np.append(calls["start_ns"], MISSING)[call]
    issued = np.where(call >= 0, issued, activities["start_ns"][rows])
    in_graph = activities["graph_node_id"][rows] != MISSING
    op_id = np.append(index.profile.tables["ops"]["op_id"], MISSING)[index.activity_op[rows]]
    found = [
        Collective(
            kinds[code] or UNKNOWN, start, end, at, thread, op,
            f"graphs of device {device}" if replayed else f"device {device}, stream {stream}",
        )
        for code, start, end, at, thread, op, device, stream, replayed in zip(
            names.codes[rows].tolist(),
            activities["start_ns"][rows].tolist(),
            activities["end_ns"][rows].tolist(),
            issued.tolist(),
            activities["thread_id"][rows].tolist(),
            op_id.tolist(),
            activities["device_id"][rows].tolist(),
            activities["stream_id"][rows].tolist(),
            in_graph.tolist(),
            strict=True,
        )
    ]  # fmt: skip
    for kernel in found:
        kernel.blocked_ns = kernel.start_ns
    launched = [c for c, replayed in zip(found, in_graph.tolist(), strict=True) if not replayed]
    _describe(launched, _calls_with_payload(index))
    return found


def _calls_with_payload(index: ProfileIndex) -> list[tuple[int, int, _Call]]:
    """Return thread, start and payload of the calls of NCCL."""
    ops = index.profile.tables["ops"]
    rows = _with_communicator(index)
    rows = rows[~_is_host_call(index)[rows]]
    found = []
    for row, values in zip(rows.tolist(), _arguments(index, rows), strict=True):
        name = ops.names("name").categories[ops.names("name").codes[row]]
        kind = kind_of_call(str(values["collective"] or name))
        if values["collective"] is not None and kind not in KINDS:
            continue  # such as a wait
        communicator = values[NCCL_COMMUNICATOR]
        text = f"{communicator:#x}" if isinstance(communicator, int) else str(communicator)
        size, peer = values["Message size [bytes]"], values["Peer rank"]
        call = _Call(
            kind,
            str(values["communicator"]) if communicator is None else text,
            _integer(values["bytes"] if size is None else size),
            _integer(values["Peer"] if peer is None else peer),
            _integer(values["ranks"]),
        )
        found.append((int(ops["thread_id"][row]), int(ops["start_ns"][row]), call))
    return found


def _describe(kernels: Sequence[Collective], calls: list[tuple[int, int, _Call]]) -> None:
    """Set what the payloads of the calls say of the kernels that they launched."""
    events: list[tuple[int, int, bool, Any]] = [
        *((thread, at, False, call) for thread, at, call in calls),
        *((kernel.thread_id, kernel.issued_ns, True, kernel) for kernel in kernels),
    ]
    events.sort(key=lambda event: event[:3])
    pending: list[_Call] = []
    for _, of_thread in groupby(events, key=lambda event: event[0]):
        pending.clear()
        for is_kernel, part in groupby(of_thread, key=lambda event: event[2]):
            items = [event[3] for event in part]
            if is_kernel:
                _describe_group(items, pending)
                pending.clear()
            else:
                pending.extend(items)


def _describe_group(kernels: list[Collective], calls: list[_Call]) -> None:
    """Describe kernels that were launched after some calls, in one group."""
    for kernel, served in _served(kernels, calls):
        communicators = {call.communicator for call in served}
        kernel.communicator = communicators.pop() if len(communicators) == 1 else None
        sizes = [call.size for call in served]
        kernel.size = sum(sizes) if sizes and MISSING not in sizes else MISSING
        kernel.ranks = max((call.ranks for call in served), default=MISSING)
        kinds = {call.kind for call in served}
        if len(kinds) == 1:
            kernel.kind = kinds.pop()
        elif _is_all_to_all(served):
            kernel.kind = "all_to_all"


def _served(
    kernels: list[Collective], calls: list[_Call]
) -> Iterator[tuple[Collective, list[_Call]]]:
    """Yield the kernels whose calls are certain, with these."""
    if len(kernels) == 1:
        served = [call for call in calls if _may_serve(kernels[0], call)]
        if served:
            yield kernels[0], served
        return
    communicators = list(dict.fromkeys(call.communicator for call in calls))
    if len(kernels) == len(calls):
        # Kernels of one group are launched in the order of the calls, or by kind.
        if any(not _may_serve(k, c) for k, c in zip(kernels, calls, strict=True)):
            return
        yield from ((k, [c]) for k, c in zip(kernels, calls, strict=True))
    elif len(kernels) == len(communicators):
        for kernel, communicator in zip(kernels, communicators, strict=True):
            yield kernel, [call for call in calls if call.communicator == communicator]
    elif len(communicators) == 1:
        for kernel in kernels:
            kernel.communicator = communicators[0]


def _may_serve(kernel: Collective, call: _Call) -> bool:
    sends = kernel.kind == "send_receive" and call.kind in (*POINT_TO_POINT, "all_to_all")
    return kernel.kind in (UNKNOWN, call.kind) or sends


def _is_all_to_all(calls: Sequence[_Call]) -> bool:
    """Whether calls send to all ranks, and receive from all, the own one included."""
    to, source = (
        sorted(call.peer for call in calls if call.kind == kind) for kind in ("send", "receive")
    )
    return len(to) > 1 and to == source == list(range(len(to)))


def host_calls(index: ProfileIndex) -> list[Collective]:
    """Return the collectives on the host: recorded calls, and the waits for them."""
    ops = index.profile.tables["ops"]
    rows = _with_communicator(index)
    rows = rows[_is_host_call(index)[rows]]
    names, types = ops.names("name"), ops.names("op_type")
    ends: dict[tuple[object, ...], int] = {}
    found = []
    for row, values in zip(rows.tolist(), _arguments(index, rows), strict=True):
        key = values["communicator"], values["number"], values["Peer"]
        name = names.categories[names.codes[row]]
        if types.categories[types.codes[row]] == WAIT:
            ends.setdefault((*key, kind_of_call(name.removeprefix("wait for "))), row)
            continue
        found.append(
            (
                key,
                Collective(
                    kind_of_call(name), int(ops["start_ns"][row]), NOT_ENDED,
                    int(ops["start_ns"][row]), int(ops["thread_id"][row]),
                    int(ops["op_id"][row]), _HOST,
                    str(values["communicator"]), _integer(values["bytes"]),
                    _integer(values["number"]), _integer(values["ranks"]),
                ),
            )
        )  # fmt: skip
    for key, collective in found:
        wait = ends.get((*key, collective.kind))
        if wait is not None and collective.number != MISSING:
            collective.end_ns = int(ops["end_ns"][wait])
            collective.blocked_ns = int(ops["start_ns"][wait])
    return [collective for _, collective in found]


def _is_host_call(index: ProfileIndex) -> Any:  # noqa: ANN401 - a mask
    types = index.profile.tables["ops"].names("op_type")
    return types.equals(CALL) | types.equals(WAIT)


def _with_communicator(index: ProfileIndex) -> Any:  # noqa: ANN401 - rows
    """Return the rows of ops with a communicator, by start."""
    ops = index.profile.tables["ops"]
    texts = ops.names("args")
    known = [NCCL_COMMUNICATOR in text or '"communicator"' in text for text in texts.categories]
    rows = np.flatnonzero(np.array([*known, False])[texts.codes])
    return rows[np.argsort(ops["start_ns"][rows], kind="stable")]


def _arguments(index: ProfileIndex, rows: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    columns = arguments(index.profile.tables["ops"].names("args"), rows, ARGUMENTS)
    values = [[*column.distinct, None] for column in columns]
    codes = np.stack([column.codes for column in columns], axis=1).tolist() if len(rows) else []
    for row in codes:
        yield {
            name: values[i][code] for i, (name, code) in enumerate(zip(ARGUMENTS, row, strict=True))
        }


def _integer(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else MISSING
