"""SQL over the tables of a profile, by DuckDB.

A query runs on a separate connection that sees only the profile: it cannot read or write files,
load extensions or change its limits.
"""

from __future__ import annotations

from concurrent.futures import Future, wait
from threading import TIMEOUT_MAX
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epprof_nb.analysis.sql.limits import MAX_BYTES, TIME_LIMIT_S
from epprof_nb.analysis.sql.refused_queries import check_statement, check_text
from epprof_nb.analysis.sql.tables import VIEWS, tables_of
from epprof_nb.core.own_thread import ListedThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import duckdb
    import pandas as pd

    from epprof_nb.data.profile_data import ProfileData

T = TypeVar("T")

_BATCH_ROWS = 100_000
_INTERRUPT_EVERY_S, _GRACE_S = 0.05, 0.5
_CONFIG = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "temp_directory": "",
}
_FOLDING = "expression_rewriter,statistics_propagation"
"""Optimizers that evaluate constants, such as ``repeat('x', 300000000)``, beyond the limits."""
_TEXTS = ("varchar", "enum")
_HUGE = pa.decimal128(38, 0)
"""The Arrow type of DuckDB's HUGEINT, the type of a sum of integers."""


def sql(
    profile: ProfileData,
    query: str,
    *,
    time_limit_s: float = TIME_LIMIT_S,
    max_bytes: int = MAX_BYTES,
) -> pd.DataFrame:
    """Return the result of a query as a DataFrame; see `epprof_nb.Profile.sql`."""
    return select(tables_of(profile, query), query, time_limit_s=time_limit_s, max_bytes=max_bytes)


def select(
    tables: Mapping[str, pa.Table],
    query: str,
    *,
    time_limit_s: float,
    max_bytes: int,
    max_rows: int | None = None,
    max_chars: int | None = None,
    threads: int | None = None,
) -> pd.DataFrame:
    """Return the result of a query over some tables as a DataFrame.

    Parameters
    ----------
    tables
        Name to table; see `tables_of`.
    query, time_limit_s, max_bytes
        See `epprof_nb.Profile.sql`.
    max_rows
        Number of rows after which the query stops; None for all.
    max_chars
        Number of characters after which each text is cut; None for all.
    threads
        Number of threads; None for one per processor.
    """
    return answer(
        lambda duckdb, config: _connect(duckdb, tables, config),
        query,
        time_limit_s=time_limit_s,
        max_bytes=max_bytes,
        max_rows=max_rows,
        max_chars=max_chars,
        threads=threads,
    )


def answer(
    connect: Callable[[Any, dict[str, str]], duckdb.DuckDBPyConnection],
    query: str,
    *,
    time_limit_s: float,
    max_bytes: int,
    max_rows: int | None = None,
    max_chars: int | None = None,
    threads: int | None = None,
) -> pd.DataFrame:
    """Return the result of a query on a new connection, which is closed; see `select`.

    `connect` is called with the module of DuckDB and the configuration, and returns a connection
    that sees only what the query may read.
    """
    duckdb = _duckdb()
    if not time_limit_s > 0 or max_bytes < 1:
        raise ValueError(
            f"time_limit_s and max_bytes must be more than 0, not {time_limit_s} and {max_bytes}"
        )
    check_text(query)
    deadline = monotonic() + time_limit_s
    too_late = TimeoutError(
        f"the query did not finish in {time_limit_s:g} s. Filter earlier, or raise time_limit_s."
    )
    config = {**_CONFIG, "memory_limit": f"{max(max_bytes // 10**6, 1)}MB"}
    if max_rows is not None:
        config["disabled_optimizers"] = _FOLDING
    if threads is not None:
        config["threads"] = str(threads)

    def fetch() -> tuple[list[str], list[pa.RecordBatch]]:
        check_statement(connection, query)
        relation = connection.sql(query)
        preview, batches = _preview(relation, max_rows, max_chars), []
        for batch in _batches(preview, max_bytes):
            # An interrupt between two batches has no effect.
            if monotonic() > deadline:
                raise too_late
            batches.append(batch)
        return relation.columns, batches

    try:
        connection = connect(duckdb, config)
        names, batches = _within(deadline, connection, fetch, too_late)
    except TimeoutError:
        raise
    except (duckdb.Error, OSError, pa.ArrowException) as error:  # Arrow's reader raises some too
        raise _failure(error, max_bytes, too_late) from error
    columns = []
    for name, column in zip(names, pa.Table.from_batches(batches).columns, strict=True):
        try:
            columns.append(_to_series(column))
        except (OverflowError, pa.ArrowException) as error:
            raise ValueError(
                f"the query's column {name!r} has a value that Python cannot hold ({error}). "
                "Select it as text: ::varchar"
            ) from error
        if monotonic() > deadline:
            raise too_late
    return _to_frame(columns, names)


def _failure(error: Exception, max_bytes: int, too_late: TimeoutError) -> Exception:
    """Return the documented error for one of DuckDB or Arrow."""
    kind, text = type(error).__name__, str(error)
    if kind == "InterruptException" or "INTERRUPT" in text:
        return too_late
    if kind == "OutOfMemoryException" or "Out of Memory" in text:
        return MemoryError(_too_large(max_bytes))
    return ValueError(f"the query failed: {error}")


def _within(
    deadline: float, connection: duckdb.DuckDBPyConnection, fetch: Callable[[], T], late: Exception
) -> T:
    """Run a function that uses a connection, close the connection, and return the result.

    The function runs on a separate thread. After the deadline, it is interrupted until it ends.
    DuckDB checks for interrupts only between the chunks of a query, so a function on one long text
    or list may continue. It is left running, and the error says so.
    """
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(fetch())
        except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
            future.set_exception(error)
        finally:
            connection.close()

    # Python waits for this thread when it exits; a daemon thread inside DuckDB would abort.
    ListedThread(target=work, name="epprof query").start()
    wait_s = min(max(deadline - monotonic(), 0), TIMEOUT_MAX)
    try:
        while not wait([future], wait_s).done:
            if monotonic() > deadline + _GRACE_S:
                raise TimeoutError(
                    f"{late} DuckDB cannot stop the current function: it continues in the "
                    "background, and Python waits for it when it exits."
                )
            # An interrupt has no effect before the query has begun, or between two batches.
            connection.interrupt()
            wait_s = _INTERRUPT_EVERY_S
    except KeyboardInterrupt:
        connection.interrupt()
        raise
    return future.result()


def _duckdb() -> Any:  # noqa: ANN401 - a module that may be absent
    try:
        import duckdb
    except ImportError as error:
        raise ImportError(
            "prof.sql() needs DuckDB, which is not installed. Install it with: "
            "pip install epprof-nb[sql]"
        ) from error
    return duckdb


def _connect(
    module: Any,  # noqa: ANN401
    tables: Mapping[str, pa.Table],
    config: dict[str, str],
) -> duckdb.DuckDBPyConnection:
    connection: duckdb.DuckDBPyConnection = module.connect(":memory:", config=config)
    for name, table in tables.items():
        connection.register(name, table)
    for name, view in VIEWS.items():
        connection.execute(f"create view {name} as {view}")
    lock(connection)
    return connection


def lock(connection: duckdb.DuckDBPyConnection) -> None:
    """Let a connection read nothing but what it has now, and keep its configuration."""
    # A query must not read the variables of the calling Python code.
    connection.execute("set python_enable_replacements = false")
    connection.execute("set lock_configuration = true")


def _preview(relation: Any, max_rows: int | None, max_chars: int | None) -> Any:  # noqa: ANN401
    """Return a relation with the first rows only, and with its texts cut."""
    if max_rows is not None:
        relation = relation.limit(max_rows)
    if max_chars is not None:
        # Several columns may have the same name, so they are addressed by position.
        columns = [
            f"left(#{i}::varchar, {max_chars})" if kind.id in _TEXTS else f"#{i}"
            for i, kind in enumerate(relation.types, start=1)
        ]
        relation = relation.project(", ".join(columns))
    return relation


def _batches(relation: Any, max_bytes: int) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
    """Read the result in batches, so that it is bounded as well."""
    # Renamed in DuckDB 1.4.
    reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    size = 0
    with reader(_BATCH_ROWS) as stream:
        # A result without rows needs its schema too.
        yield pa.RecordBatch.from_pylist([], stream.schema)
        for batch in stream:
            size += batch.nbytes
            if size > max_bytes:
                raise MemoryError(_too_large(max_bytes))
            yield batch


def _too_large(max_bytes: int) -> str:
    return (
        f"the query needs more than {max_bytes:,} bytes of memory. Select fewer columns or rows, "
        "or raise max_bytes."
    )


def _to_frame(columns: Sequence[pd.Series], names: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    # A query may give several columns the same name.
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame()
    frame.columns = pd.Index(names, dtype=object)
    return frame


def _to_series(column: pa.ChunkedArray) -> pd.Series:
    """Return a column with dtypes that pandas 2.3 and 3 share."""
    import pandas as pd

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.type == _HUGE:
        try:
            column = pc.cast(column, pa.int64())
        except pa.ArrowInvalid:  # a sum beyond 64 bits
            whole = [None if value is None else int(value) for value in column.to_pylist()]
            return pd.Series(whole, dtype=object)
    if pa.types.is_integer(column.type) and column.null_count:
        missing = column.is_null().to_numpy()
        numbers = pc.fill_null(column, 0).to_numpy()
        return pd.Series(pd.arrays.IntegerArray(np.array(numbers), np.array(missing)))
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return pd.Series(np.array(column.to_numpy()))
    if pa.types.is_boolean(column.type) and not column.null_count:
        return pd.Series(column.to_numpy())
    values = np.empty(len(column), object)
    values[:] = column.to_pylist()
    return pd.Series(values, dtype=object)
