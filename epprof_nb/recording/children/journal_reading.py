"""Read the journal of a killed process, and correlate it."""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.core.options import Options
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.schema import ACTIVITIES, GRAPHS, MEMORY, OPS, OVERHEAD
from epprof_nb.data.stack_table import with_stack_rows
from epprof_nb.data.table import STORAGE, Table
from epprof_nb.recording.children.journal import GRAPH_TABLES, TABLES, journal_schema
from epprof_nb.recording.code_texts import merged_texts
from epprof_nb.recording.frameworks.framework_ops import OF_KINDS, id_of
from epprof_nb.recording.native_columns import OP_NAME
from epprof_nb.recording.recorder import RecordedGraphs, RecorderOutput
from epprof_nb.recording.session.correlate import correlate
from epprof_nb.recording.session.graph_node_registry import GraphNodeRegistry
from epprof_nb.recording.session.profile_info import build_info
from epprof_nb.recording.session.recording import Batch, Recording
from epprof_nb.recording.session.session import rebased
from epprof_nb.recording.session.thread_names import ThreadNames
from epprof_nb.recording.stacks.shown_stacks import shown_stacks
from epprof_nb.recording.statements.statement_registry import STATEMENT, Cell, Statement, register

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from epprof_nb.data.schema import TableSchema

_SCHEMAS = {
    "activities": ACTIVITIES, "memory": MEMORY, "overhead": OVERHEAD, "capture_ops": OPS,
    "facts": GRAPHS,
}  # fmt: skip
_OPS = {
    "op_id": 8, "parent_op_id": 8, "start_ns": 8, "end_ns": 8, "duration_ns": 8, "suspended_ns": 8,
    "name_id": 4, "payload_id": 4, "count": 4, "category": 2, "flags": 2, "thread_id": 8,
}  # fmt: skip
_LAUNCHES = {
    "correlation_id": 8, "op_id": 8, "start_ns": 8, "end_ns": 8, "name_id": 4, "return_value": 4,
    "flags": 2, "domain": 2, "stack_id": 4, "thread_id": 8,
}  # fmt: skip
_SAMPLES = {"time": 8, "interval": 8, "processor": 8, "core_wait": 8, "thread_id": 8, "stack_id": 4}
_NO_STATEMENT = 2**32 - 1


class KilledRecording:
    """The recording of a killed process.

    Parameters
    ----------
    path
        Its journal, which may be from an untrusted source.

    Attributes
    ----------
    facts
        What the process stated when the journal began.
    begin_ns, end_ns
        Begin of the recording, and the last time that the journal was written.

    Raises
    ------
    EOFError
        If it has no complete batch: the process was killed before.
    ValueError, LookupError, TypeError, OSError, pyarrow.ArrowException
        If the file is not a journal, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        flushes = _read(path)
        self.facts: dict[str, Any] = json.loads(flushes[0]["facts"])
        self._state = json.loads(flushes[-1]["state"])
        self.begin_ns = int(self._state["opened_ns"])
        self.end_ns = int(self._state["closed_ns"])
        self._dropped = json.loads(flushes[-1].get("dropped", b"{}"))
        self._names: list[str] = []
        self._op_names: list[str] = []
        self._op_args: list[str] = []
        self._statements: dict[int, int] = {}
        self._kinds: dict[int, int] = {}
        self._batches: list[Batch] = []
        self._stacks: list[dict[str, Any]] = []
        for entries in flushes:
            if "names" in entries:
                self._add(entries)

    def _add(self, entries: dict[str, bytes]) -> None:
        self._names += _texts(entries["names"])
        self._op_names += _texts(entries["op_names"])
        self._op_args += _texts(entries["op_args"])
        for key, (cell, line, end_line) in json.loads(entries["statements"]).items():
            if int(key) not in self._statements:
                statement = Statement(Cell(str(cell), ""), int(line), int(end_line), "")
                self._statements[int(key)] = register([statement], [-1])
        for number, (op_type, source, args) in json.loads(entries["kinds"]).items():
            own = id_of(str(op_type), str(source), None if args is None else str(args))
            self._kinds[int(number)] = own
        batches: dict[int, dict[str, bytes]] = defaultdict(dict)
        stacks: dict[int, dict[str, bytes]] = defaultdict(dict)
        for name, value in entries.items():
            kind, _, rest = name.partition("/")
            number, _, rest = rest.partition("/")
            if kind == "batch":
                batches[int(number)][rest] = value
            elif kind == "stacks":
                stacks[int(number)][rest] = value
        self._batches += [self._batch(batches[number]) for number in sorted(batches)]
        self._stacks += [_native_columns(stacks[number], "") for number in sorted(stacks)]

    def _batch(self, entries: dict[str, bytes]) -> Batch:
        ops = _native_columns(entries, "ops/", _OPS)
        launches = _native_columns(entries, "launches/", _LAUNCHES)
        samples = _native_columns(entries, "samples/", _SAMPLES)
        ops |= {"op_names": self._op_names, "op_args": self._op_args}
        ops["name_id"] = self._own_names(ops["name_id"])
        launches["name_id"] = self._own_names(launches["name_id"])
        payload = np.frombuffer(ops["payload_id"], np.uint32).copy()
        category = np.frombuffer(ops["category"], np.uint16)
        for row in np.flatnonzero(category == STATEMENT).tolist():
            payload[row] = self._statements.get(int(payload[row]), _NO_STATEMENT)
        has_kind = np.isin(category, OF_KINDS)
        used, of_row = np.unique(payload[has_kind], return_inverse=True)
        own = [self._kinds[number] for number in used.tolist()]
        payload[has_kind] = np.array(own, np.uint32)[of_row]
        ops["payload_id"] = payload.tobytes()
        numbers = {name.split("/")[1] for name in entries if name.startswith("outputs/")}
        outputs = [_output(entries, f"outputs/{at}/") for at in sorted(numbers, key=int)]
        costs = [
            (max(int(ns), 0), max(int(events), 0)) for ns, events in json.loads(entries["costs"])
        ]
        return Batch(ops, launches, outputs, int(entries["flushed_ns"]), samples, costs=costs)

    def _own_names(self, raw: bytes) -> bytes:
        """Return ids of names with those that the names have in this process."""
        ids = np.frombuffer(raw, np.uint32)
        used, inverse = np.unique(ids, return_inverse=True)
        own = [i if i & OP_NAME else _native.intern(self._names[i]) for i in used.tolist()]
        return np.array(own, np.uint32)[inverse].tobytes()

    def profile(self) -> ProfileData:
        """Correlate the recording.

        Raises
        ------
        ValueError, LookupError, TypeError
            If the journal is damaged.
        """
        state = self._state
        options = Options(detail=str(state["settings"].get("detail", "default")))
        graph_nodes = GraphNodeRegistry()
        for batch in self._batches:
            for output in batch.outputs:
                graph_nodes.add(output.graphs.nodes, self._stacks)
        recording = Recording(
            batches=self._batches, previous_batches=[], opened_ns=self.begin_ns,
            stopped_ns=self.end_ns, closed_ns=self.end_ns, devices=state["devices"],
            versions=state["versions"], clock=state["clock"], settings=state["settings"],
            notes=[*map(str, state["notes"]), *self._notes()], graph_nodes=graph_nodes,
            thread_names=ThreadNames({int(k): str(v) for k, v in state["threads"].items()}),
            stacks=self._stacks, kernel_places=state["kernel_places"], recorders=[],
            options=options,
        )  # fmt: skip
        correlated = correlate(recording)
        monotonic, epoch = self.facts["epoch"]
        info = {
            "cell": None,
            "script": None,
            "detail": options.detail,
            **build_info(recording, correlated, (int(monotonic), int(epoch))),
            "error": "killed",
        }
        tables = {name: rebased(table, self.begin_ns) for name, table in correlated.tables.items()}
        texts: dict[str, str] = {}
        if correlated.stacks is not None:
            shown = shown_stacks(correlated.stacks, options)
            tables = with_stack_rows({**tables, "stacks": shown.table}, shown.row)
            texts = shown.texts
        return ProfileData(tables, info, merged_texts(texts, {}))

    def _notes(self) -> list[str]:
        note = (
            "The process was killed. The profile comes from its journal, which is written every 5 "
            "seconds: later work is missing, and so are details of PyTorch's operators and of NVTX "
            "ranges."
        )
        notes = [note]
        if self._dropped:
            count = int(self._dropped.get("activities", 0))
            notes.append(
                f"Its journal reached its limit of 64 MB: {count:,} later activities were dropped."
            )
        return notes


def _read(path: Path) -> list[dict[str, bytes]]:
    """Return the complete record batches of a journal, as name to value."""
    import pyarrow as pa

    found: list[dict[str, bytes]] = []
    if not path.stat().st_size:
        raise EOFError("the journal is empty")
    with path.open("rb") as file:
        messages = pa.ipc.MessageReader.open_stream(file)
        try:
            schema = pa.ipc.read_schema(messages.read_next_message())
        except StopIteration:  # an end-of-stream marker, or zeros, which are one
            raise ValueError("it ends before its schema") from None
        if schema != journal_schema():
            raise ValueError("it is not a journal")
        while True:
            try:
                message = messages.read_next_message()
            except StopIteration:
                break
            except (OSError, pa.ArrowInvalid):  # the process was killed while it wrote
                break
            if _is_compressed(bytes(message.metadata)):  # small files could fill the memory
                raise ValueError("it is compressed, which journals are not")
            batch = pa.ipc.read_record_batch(message, journal_schema())
            batch.validate(full=True)
            names, values = (batch.column(at).to_pylist() for at in range(2))
            found.append(dict(zip(names, values, strict=True)))
    if not found:
        raise EOFError("the journal has no complete batch")
    return found


def _is_compressed(metadata: bytes) -> bool:
    """Whether the metadata of a message describes a compressed record batch."""
    (root,) = struct.unpack_from("<I", metadata)
    header = _field(metadata, root, 2)
    if not header:
        raise ValueError("a message has no header")
    return bool(_field(metadata, header + struct.unpack_from("<I", metadata, header)[0], 3))


def _field(buffer: bytes, table: int, number: int) -> int:
    """Return the position of a field of a table of FlatBuffers; 0 if it is not there."""
    vtable = table - struct.unpack_from("<i", buffer, table)[0]
    (size,) = struct.unpack_from("<H", buffer, vtable)
    at = 4 + 2 * number
    offset = struct.unpack_from("<H", buffer, vtable + at)[0] if at < size else 0
    return table + offset if offset else 0


def _native_columns(
    entries: dict[str, bytes], prefix: str, sizes: dict[str, int] | None = None
) -> dict[str, Any]:
    """Return the columns of the native core below a prefix, whose rows must agree."""
    found: dict[str, Any] = {
        name.removeprefix(prefix): value for name, value in entries.items()
        if name.startswith(prefix)
    }  # fmt: skip
    counts = json.loads(found.pop("counts", b"{}"))
    if sizes is not None and found:
        rows = {len(found[name]) / size for name, size in sizes.items()}
        if len(rows) > 1 or not rows.pop().is_integer():
            raise ValueError(f"columns of {prefix} differ in length")
    return found | {str(name): int(value) for name, value in counts.items()}


def _output(entries: dict[str, bytes], prefix: str) -> RecorderOutput:
    dropped, decode_ns = json.loads(entries[f"{prefix}dropped"])
    tables = {
        name: _table(entries, f"{prefix}{name}/", _SCHEMAS[name])
        for name in (*TABLES, *GRAPH_TABLES)
    }
    nodes = {
        name.removeprefix(f"{prefix}nodes/"): np.frombuffer(value, np.int64)
        for name, value in entries.items()
        if name.startswith(f"{prefix}nodes/")
    }
    facts, capture_ops = tables["facts"], tables["capture_ops"]
    return RecorderOutput(
        activities=tables["activities"],
        memory=tables["memory"],
        overhead=tables["overhead"],
        dropped=int(dropped),
        decode_ns=int(decode_ns),
        graphs=RecordedGraphs(
            nodes,
            capture_ops if len(capture_ops) else None,
            facts if len(facts) else None,
        ),
    )


def _table(entries: dict[str, bytes], prefix: str, schema: TableSchema) -> Table:
    columns: dict[str, npt.NDArray[Any] | CategoryColumn] = {}
    for column in schema.columns:
        value = entries.get(f"{prefix}{column.name}")
        if value is None:
            continue
        stored = np.frombuffer(value, STORAGE[column.kind])
        if column.kind in ("name", "args"):
            categories = tuple(_texts(entries[f"{prefix}{column.name}/categories"]))
            if len(stored) and not -1 <= stored.min() <= stored.max() < len(categories):
                raise ValueError(f"the column {column.name} has an unknown name")
            columns[column.name] = CategoryColumn(stored, categories)
        else:
            columns[column.name] = stored
    return Table(schema, columns)


def _texts(value: bytes) -> list[str]:
    return [str(text) for text in json.loads(value)]
