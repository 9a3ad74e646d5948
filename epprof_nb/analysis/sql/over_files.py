"""SQL over Parquet files, by DuckDB: tables that are larger than memory.

A query reads only files below one folder, besides what DuckDB spills to a temporary folder.
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from epprof_nb.analysis.sql.in_this_process import answer, lock
from epprof_nb.data.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import duckdb
    import pandas as pd
    import pyarrow as pa

    from epprof_nb.data.schema import Column, TableSchema

_TYPES = {"name": "varchar", "args": "varchar", "bool": "boolean", "row": "integer"}
_DEVICE_WORK = """
    select * replace (greatest(end_ns - start_ns, 0) as duration_ns) from activities
    where kind in ('kernel', 'memcpy', 'memset') or kind = 'graph_launch' and not exists (
        from activities as node where node.kind in ('kernel', 'memcpy', 'memset')
        and node.rank = activities.rank and node.correlation_id = activities.correlation_id)"""
_GLOB = re.compile(r"[*?\[\]]")


def select_from_files(
    files: Mapping[int, Mapping[str, Path]],
    more: Mapping[str, pa.Table],
    query: str,
    *,
    time_limit_s: float,
    max_bytes: int,
) -> pd.DataFrame:
    """Return the result of a query over the tables of several processes as a DataFrame.

    Parameters
    ----------
    files
        Number of each process to its Parquet files by the name of the table. The tables get the
        number as a column ``rank``.
    more
        Further tables by name.
    query, time_limit_s, max_bytes
        See `epprof_nb.Profile.sql`.
    """
    # Views of the other tables would only cost the time to open their files.
    named = {*re.findall(r"[a-z_]+", query.lower())}
    if "device_work" in named:
        named.add("activities")
    with tempfile.TemporaryDirectory(prefix="epprof-sql-") as spill:

        def connect(module: Any, config: dict[str, str]) -> duckdb.DuckDBPyConnection:  # noqa: ANN401
            config = {
                **config, "enable_external_access": "true", "temp_directory": spill,
                "preserve_insertion_order": "false",
            }  # fmt: skip
            connection: duckdb.DuckDBPyConnection = module.connect(":memory:", config=config)
            for name, table in more.items():
                connection.register(name, table)
            for schema in TABLES:
                if schema.name in named:
                    view = _view(schema, files)
                    connection.execute(f"create view {schema.name} as {view}")
            if "device_work" in named:
                connection.execute(f"create view device_work as {_DEVICE_WORK}")
            paths = [os.fspath(path) for of_rank in files.values() for path in of_rank.values()]
            folders = ", ".join(_text(folder) for folder in sorted({*map(os.path.dirname, paths)}))
            connection.execute(f"set allowed_directories = [{folders}]")
            connection.execute("set enable_external_access = false")
            lock(connection)
            return connection

        return answer(connect, query, time_limit_s=time_limit_s, max_bytes=max_bytes)


def _view(schema: TableSchema, files: Mapping[int, Mapping[str, Path]]) -> str:
    """Return the query of a table over the files of all processes."""
    alike: dict[pa.Schema, dict[int, str]] = {}
    for rank, of_rank in files.items():
        path = of_rank.get(schema.name)
        if path is None:
            continue
        if _GLOB.search(os.fspath(path)):
            raise ValueError(
                f"{path} has characters that DuckDB takes for a pattern (*, ?, [ or ]): move the "
                "folder of the job to a path without them"
            )
        alike.setdefault(pq.read_schema(path).remove_metadata(), {})[rank] = str(path)
    if not alike:
        columns = ", ".join(_column(column, set()) for column in schema.columns)
        return f"select {columns}, null::integer as rank where false"
    return " union all ".join(_select(schema, {*s.names}, of) for s, of in alike.items())


def _select(schema: TableSchema, there: set[str], paths: Mapping[int, str]) -> str:
    """Return the query of a table over files with the same columns.

    One scan reads all of them: DuckDB plans a union of 1,000 scans for seconds.
    """
    columns = ", ".join(_column(column, there) for column in schema.columns)
    texts, ranks = ", ".join(map(_text, paths.values())), ", ".join(map(str, paths))
    rank = f"(map([{texts}], [{ranks}])[filename])::integer as rank"
    return f"select {columns}, {rank} from read_parquet([{texts}], filename = true)"  # noqa: S608 - all are quoted


def _column(column: Column, there: set[str]) -> str:
    kind = _TYPES.get(column.kind, "bigint")
    return f'"{column.name}"' if column.name in there else f'null::{kind} as "{column.name}"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
