"""Journal of a recording: what a process leaves if it is killed.

An Arrow IPC stream with a record batch for each time that the journal was written. Its columns are
the `name` and the `value` (bytes) of what was recorded since the last time, uncorrelated: columns
of the native core, columns of tables, and JSON. `epprof_nb.recording.children.journal_reading`
reads it.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.core.own_thread import OwnThread
from epprof_nb.recording.children.forks import forks
from epprof_nb.recording.frameworks.framework_ops import OF_KINDS, kinds_of
from epprof_nb.recording.session.profile_info import own_versions
from epprof_nb.recording.statements.statement_registry import STATEMENT, statement_of
from epprof_nb.util.shadowed_modules import own_imports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

    from epprof_nb.data.table import Table
    from epprof_nb.recording.session.recording import Recording
    from epprof_nb.recording.session.session import Session

JOURNAL = "journal.arrow"
BEGUN = "begun.json"
"""File beside a journal with its facts, for a process that is killed before it has written one."""
INTERVAL_S = 5.0
MAX_BYTES = 64 * 2**20
TABLES = ("activities", "memory", "overhead")
GRAPH_TABLES = ("capture_ops", "facts")
Entries = dict[str, bytes]


class Journal:
    """Appends what a session has recorded to a file, every few seconds, on its own thread.

    Parameters
    ----------
    path
        The file.
    session
        The session.
    facts
        JSON object that the reader gets: what the part of the process states.
    """

    def __init__(self, path: Path, session: Session, facts: dict[str, Any]) -> None:
        self._path, self._session, self._facts = path, session, facts
        self._begun = path.with_name(BEGUN)
        self._ended = threading.Event()
        self._process = os.getpid()
        self._writer: Any = None
        self._file: Any = None
        self._content = _Content()
        self._bytes = 0
        self._thread = OwnThread(target=self._run, name="epprof journal", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        with suppress(OSError):  # a full disk; the part is still to come
            self._begun.write_bytes(_json(self._facts))
        self._thread.start()

    def end(self) -> None:
        """Stop writing. The file remains until `remove`."""
        if os.getpid() != self._process:
            return
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._file is not None and self._is_open():
            os.close(self._file.fileno())

    @property
    def is_written(self) -> bool:
        """Whether the file has a part of the recording."""
        return self._bytes > 0 and self._path.exists()

    def remove(self) -> None:
        """Remove the files, when their content is in the part."""
        self._begun.unlink(missing_ok=True)
        self._path.unlink(missing_ok=True)

    def _run(self) -> None:
        while not self._ended.wait(INTERVAL_S):
            try:
                with forks.hold, own_imports():
                    # A child that is forked during an import could never import that module.
                    import pyarrow as pa  # noqa: F401

                    recording = self._session.so_far()
                if recording is None:
                    return
                self._write(recording)
            except Exception:  # noqa: BLE001 - such as a full disk; the part is still to come
                return

    def _write(self, recording: Recording) -> None:
        entries = self._content.since_last(recording)
        size = sum(map(len, entries.values()))
        if self._bytes + size > MAX_BYTES:
            entries = self._content.only_counts(entries)
            size = sum(map(len, entries.values()))
        self._bytes += size
        if self._writer is None:
            entries["facts"] = _json({**self._facts, "epoch": self._session.epoch})
        self._append(entries)

    def _append(self, entries: Entries) -> None:
        import pyarrow as pa

        schema = journal_schema()
        columns = [pa.array([*entries], pa.string()), pa.array([*entries.values()], schema[1].type)]
        batch = pa.record_batch(columns, schema=schema)
        if self._writer is None:
            # A killed process leaves what the system has got, so that nothing is flushed to disk.
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self._file = os.fdopen(os.open(self._path, flags, 0o666), "wb", 0, closefd=False)
            self._opened = os.fstat(self._file.fileno())
            self._writer = pa.ipc.new_stream(self._file, schema)
        elif not self._is_open():
            raise OSError("the program has closed the file of the journal")
        self._writer.write_batch(batch)

    def _is_open(self) -> bool:
        """Whether the descriptor is still the journal's: daemons close all, and use them again."""
        try:
            return os.path.samestat(self._opened, os.fstat(self._file.fileno()))
        except OSError:
            return False


def journal_schema() -> pa.Schema:
    """Return the columns of a journal."""
    import pyarrow as pa

    return pa.schema([("name", pa.string()), ("value", pa.large_binary())])


class _Content:
    """The entries of each record batch: what the last ones lack."""

    def __init__(self) -> None:
        self._batches = self._stacks = self._names = self._op_names = self._op_args = 0
        self._kinds: set[int] = set()
        self._dropped = {"activities": 0, "ops": 0}

    def since_last(self, recording: Recording) -> Entries:
        """Return what was recorded since the last call."""
        batches = recording.batches[self._batches :]
        stacks = recording.stacks[self._stacks :]
        entries: Entries = {}
        for number, batch in enumerate(batches):
            for log in ("ops", "launches", "samples"):
                for name, value in _raw(getattr(batch, log)):
                    entries[f"batch/{number}/{log}/{name}"] = value
            entries[f"batch/{number}/flushed_ns"] = _json(batch.flushed_ns)
            entries[f"batch/{number}/costs"] = _json(batch.costs)
            for at, output in enumerate(batch.outputs):
                prefix = f"batch/{number}/outputs/{at}"
                entries[f"{prefix}/dropped"] = _json([output.dropped, output.decode_ns])
                for name in TABLES:
                    entries |= _table(f"{prefix}/{name}", getattr(output, name))
                for name in GRAPH_TABLES:
                    table = getattr(output.graphs, name)
                    if table is not None:
                        entries |= _table(f"{prefix}/{name}", table)
                for name, values in output.graphs.nodes.items():
                    entries[f"{prefix}/nodes/{name}"] = values.astype(np.int64).tobytes()
        for number, drained in enumerate(stacks):
            entries |= {f"stacks/{number}/{name}": value for name, value in _raw(drained)}
        self._batches, self._stacks = len(recording.batches), len(recording.stacks)
        names = _native.names(self._names)
        self._names += len(names)
        last = recording.batches[-1].ops
        entries["names"] = _json(names)
        entries["op_names"] = _json(last["op_names"][self._op_names :])
        entries["op_args"] = _json(last["op_args"][self._op_args :])
        self._op_names, self._op_args = len(last["op_names"]), len(last["op_args"])
        entries["statements"] = _json(
            {key: place for batch in batches for key, place in _statements(batch.ops)}
        )
        kinds = {number: kind for batch in batches for number, kind in _kinds(batch.ops)}
        entries["kinds"] = _json({n: kinds[n] for n in kinds.keys() - self._kinds})
        self._kinds |= kinds.keys()
        entries["state"] = _json(_state(recording))
        return entries

    def only_counts(self, entries: Entries) -> Entries:
        """Return how much was dropped until now, with the state of the recording."""
        for name, number in _rows(entries):
            self._dropped[name] += number
        return {"state": entries["state"], "dropped": _json(self._dropped)}


def _rows(entries: Entries) -> Iterator[tuple[str, int]]:
    for name, value in entries.items():
        if name.endswith("/activities/start_ns"):
            yield "activities", len(value) // 8
        elif name.endswith("/ops/op_id"):
            yield "ops", len(value) // 8


def _raw(log: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Yield the columns of the native core, and its counts together."""
    counts = {name: value for name, value in log.items() if isinstance(value, int)}
    if counts:
        yield "counts", _json(counts)
    for name, value in log.items():
        if isinstance(value, memoryview):
            yield name, value.tobytes()


def _table(prefix: str, table: Table) -> Entries:
    """Return the columns of a table that has rows, names as codes and categories."""
    entries: Entries = {}
    for column in table.schema.columns if len(table) else ():
        if table.is_absent(column.name):
            continue
        if column.kind in ("name", "args"):
            names = table.names(column.name).compact()
            entries[f"{prefix}/{column.name}"] = names.codes.tobytes()
            entries[f"{prefix}/{column.name}/categories"] = _json(names.categories)
        else:
            entries[f"{prefix}/{column.name}"] = table[column.name].tobytes()
    return entries


def _statements(ops: dict[str, Any]) -> Iterator[tuple[int, tuple[str, int, int]]]:
    """Yield the keys of the statements among some ops, with cell and lines."""
    is_statement = np.frombuffer(ops["category"], np.uint16) == STATEMENT
    for key in np.unique(np.frombuffer(ops["payload_id"], np.uint32)[is_statement]).tolist():
        statement = statement_of(key)
        if statement is not None:
            yield key, (statement.cell.name, statement.line, statement.end_line)


def _kinds(ops: dict[str, Any]) -> Iterator[tuple[int, tuple[str, str, str | None]]]:
    """Yield the payload ids of the framework ops among some ops, with their kinds."""
    has_kind = np.isin(np.frombuffer(ops["category"], np.uint16), OF_KINDS)
    payload = np.frombuffer(ops["payload_id"], np.uint32)[has_kind]
    for number, kind in kinds_of(payload.astype(np.int64)).items():
        yield number, (kind.op_type, kind.source, kind.args)


def _state(recording: Recording) -> dict[str, Any]:
    return {
        "opened_ns": recording.opened_ns,
        "closed_ns": recording.closed_ns,
        "devices": recording.devices,
        "versions": {**own_versions(), **recording.versions},
        "clock": recording.clock,
        "settings": recording.settings,
        "notes": recording.notes,
        "threads": recording.thread_names.known,
        "kernel_places": recording.kernel_places,
    }


def _json(value: object) -> bytes:
    return json.dumps(value, default=str).encode()
