"""Tables built from events row by row, in bounded memory besides the tables themselves."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING
from epprof_nb.data.table import FILL, STORAGE, Table, row_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.schema import TableSchema

_BATCH_ROWS = 20_000
MAX_NS = 2**61
"""Bound of times, 73 years: differences and sums of two times fit in 64 bits."""
MAX_NAME = 32_768
MAX_SHAPES = 2_000
"""Maximum number of characters of the shapes of an op's inputs; longer ones are missing."""
_FIRST_MADE_UP_THREAD = 2**40


class Budget:
    """Bound of the memory of all tables of a trace, in bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = self._left = max_bytes

    def take(self, size: int) -> None:
        """Count more memory; raise ProfileFileError beyond the limit."""
        self._left -= size
        if self._left < 0:
            raise ProfileFileError(
                f"the trace needs more than {self._max_bytes:,} bytes of memory. If you trust it, "
                "read it with a larger max_bytes."
            )


class _Codes(dict[str | None, int]):
    """Codes of names, in the order in which they appear; None has the code `MISSING`."""

    def __init__(self) -> None:
        super().__init__({None: MISSING})

    def __missing__(self, name: str) -> int:
        code = self[name] = len(self) - 1
        return code


class Rows:
    """Rows of a table.

    Parameters
    ----------
    schema
        The schema of the table.
    columns
        Names of the columns that `append` and `extend` take values for.
    budget
        Bound of the memory of the rows.
    """

    def __init__(self, schema: TableSchema, columns: tuple[str, ...], budget: Budget) -> None:
        self._schema, self._budget = schema, budget
        self._kinds = {name: schema.column(name).kind for name in columns}
        self._row_bytes = row_bytes(
            c for c in schema.columns if not c.optional or c.name in columns
        )
        self._pending: list[tuple[Any, ...]] = []
        self._parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in columns}
        self._codes: dict[str, _Codes] = {
            name: _Codes() for name, kind in self._kinds.items() if kind in ("name", "args")
        }

    def append(self, *values: object) -> None:
        """Add a row; None is missing."""
        self._pending.append(values)
        if len(self._pending) >= _BATCH_ROWS:
            self._flush()

    def extend(self, *columns: npt.NDArray[Any] | Sequence[str | None]) -> None:
        """Add rows: an array per column of numbers, names or None per column of names."""
        self._flush()
        self._budget.take(len(columns[0]) * self._row_bytes)
        for name, values in zip(self._kinds, columns, strict=True):
            codes = self._codes.get(name)
            if codes is None:
                self._parts[name].append(np.asarray(values))
                continue
            before = len(codes)
            part = np.fromiter(map(codes.__getitem__, values), np.int32, len(values))
            self._parts[name].append(part)
            if len(codes) > before:
                added = islice(reversed(codes), len(codes) - before)
                self._budget.take(sum(len(text or "") + 64 for text in added))

    def _flush(self) -> None:
        rows, self._pending = self._pending, []
        if not rows:
            return
        self.extend(*(
            values if name in self._codes else np.array(
                [FILL[kind] if value is None else value for value in values], STORAGE[kind]
            )
            for (name, kind), values in zip(
                self._kinds.items(), zip(*rows, strict=True), strict=True
            )
        ))  # fmt: skip

    def table(self) -> Table:
        """Return the table of all rows."""
        self._flush()
        columns: dict[str, npt.NDArray[Any] | CategoryColumn] = {}
        for name, kind in self._kinds.items():
            parts = [np.empty(0, STORAGE[kind]), *self._parts[name]]
            values = np.concatenate(parts)
            if self._schema.column(name).optional and (values == FILL[kind]).all():
                continue
            if name in self._codes:
                names = [text for text in self._codes[name] if text is not None]
                columns[name] = CategoryColumn(values, tuple(names))
            else:
                columns[name] = values
        return Table(self._schema, columns)


_OF_EVENTS = "'"


class Skipped:
    """Counts of skipped or changed parts, by reason."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, reason: str, count: int = 1) -> None:
        """Count events."""
        # A hostile trace could have as many categories as events.
        if reason in self._counts or len(self._counts) < 40:
            self._counts[reason] += count
        else:
            self._counts["of other kinds"] += count

    @property
    def events(self) -> int:
        """Number of events that were skipped, not only parts of them."""
        counts = self._counts.items()
        return sum(count for reason, count in counts if not reason.startswith(_OF_EVENTS))

    def notes(self) -> list[str]:
        """Return one note per reason; a reason such as ``' arguments`` is about parts of events."""
        return [
            f"Skipped events{'' if reason.startswith(_OF_EVENTS) else ' '}{reason}: {count:,}."
            for reason, count in self._counts.items()
            if count
        ]


def nanoseconds(microseconds: object) -> int | None:
    """Convert a time of an event; None if it is not a finite number, or out of range."""
    if type(microseconds) is float or type(microseconds) is int:
        scaled = microseconds * 1000
        if -MAX_NS < scaled < MAX_NS:
            return round(scaled)
    return None


def integer(value: object) -> int | None:
    """Return an id or count; None if it is not an integer, is negative or is out of range."""
    if type(value) is str and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    return value if type(value) is int and 0 <= value < 2**63 else None


def signed(value: object) -> int | None:
    """Return a change; None if it is not an integer or is out of range."""
    is_negative = type(value) is str and value.startswith("-")
    found = integer(value[1:] if is_negative else value)  # type: ignore[index]
    return -found if is_negative and found is not None else found


def text(value: object) -> str | None:
    """Return a name, cut to a bounded length; None if it is not text."""
    if type(value) is not str:
        return None
    return value if len(value) <= MAX_NAME else f"{value[:MAX_NAME]}…"


class Threads:
    """Thread ids of events: the operating system's, if they are unique in the trace."""

    def __init__(self) -> None:
        self._ids: dict[tuple[object, object], int] = {}
        self._taken: set[int] = set()
        self._made_up = 0

    def __call__(self, process: object, thread: object) -> int:
        """Return the id of a thread of a process."""
        key = (process, thread) if type(process) in (int, str) else (None, thread)
        if type(thread) not in (int, str):
            key = (key[0], None)
        found = self._ids.get(key)
        if found is None:
            number = integer(key[1])
            if number is None or number in self._taken:
                number = _FIRST_MADE_UP_THREAD + self._made_up
                self._made_up += 1
            self._taken.add(number)
            found = self._ids[key] = number
        return found

    def all(self, processes: Sequence[object], threads: Sequence[object]) -> IntArray:
        """Return the ids of the threads of many events; see `__call__`."""
        keys = list(zip(processes, threads, strict=True))
        ids = {key: self(*key) for key in dict.fromkeys(keys)}
        return np.fromiter(map(ids.__getitem__, keys), np.int64, len(keys))

    def notes(self) -> list[str]:
        """Return a note on ids that do not come from the operating system, if any."""
        if not self._made_up:
            return []
        processes = len({process for process, _ in self._ids})
        note = (
            f"{self._made_up:,} threads have generated ids, because the trace has {processes:,} "
            "processes whose thread ids are equal or not numbers."
        )
        return [note]
