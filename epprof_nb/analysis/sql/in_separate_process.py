"""SQL in a separate process, for untrusted queries.

DuckDB does not count all memory against its limit (functions on one long text or list), and cannot
be interrupted everywhere. The system can limit a process: it fails above its limit of address
space, and is killed at the end of its time. `epprof_nb.analysis.sql.separate_process_main` is the
code of that process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

# One thread, one arena: others reserve address space that they do not use.
_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
_LAST_CHARACTERS = 2_000


class CsvAnswer(NamedTuple):
    """Result of a query as CSV.

    Attributes
    ----------
    csv
        The text, cut after ``max_chars`` characters.
    characters
        Length of the whole text.
    has_more_rows
        Whether there are more than ``max_rows`` rows.
    """

    csv: str
    characters: int
    has_more_rows: bool


def csv_of_query(
    tables: Mapping[str, pa.Table],
    query: str,
    *,
    time_limit_s: float,
    max_bytes: int,
    max_rows: int,
    max_chars: int,
) -> CsvAnswer:
    """Run a query in a new process.

    Parameters
    ----------
    tables
        Name to table; see `epprof_nb.analysis.sql.tables.tables_of`.
    query
        One SELECT statement.
    time_limit_s
        Seconds after which the process is killed.
    max_bytes
        Memory of the query, beyond its tables, after which it fails.
    max_rows
        Maximum number of rows to return.
    max_chars
        Maximum number of characters to return.

    Raises
    ------
    ValueError
        If the query is wrong.
    MemoryError
        If it needs more than `max_bytes`.
    TimeoutError
        If it does not end in time.
    ImportError
        If DuckDB is not installed.
    OSError
        If the process cannot be started.
    """
    request = {
        "query": query,
        "tables": list(tables),
        "time_limit_s": time_limit_s,
        "max_bytes": max_bytes,
        "max_rows": max_rows,
        "max_chars": max_chars,
    }
    # -P: the working directory may hold files with the names of modules.
    command = [sys.executable, "-P", "-m", "epprof_nb.analysis.sql.separate_process_main"]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    # A separate session, because Jupyter interrupts the whole process group of a kernel.
    with subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **_ENVIRONMENT, "PYTHONPATH": path},
        start_new_session=True,
    ) as process:
        try:
            with suppress(BrokenPipeError):  # its exit status says why
                _send(process.stdin, request, tables)  # type: ignore[arg-type]
            answer, errors = process.communicate(timeout=time_limit_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(_too_late(time_limit_s)) from None
        finally:
            process.kill()
    return _read(answer, errors.decode(errors="replace"), process.returncode, request)


def _send(pipe: IO[bytes], request: dict[str, object], tables: Mapping[str, pa.Table]) -> None:
    pipe.write(json.dumps(request).encode() + b"\n")
    for table in tables.values():
        with pa.ipc.new_stream(pipe, table.schema) as stream:
            stream.write_table(table)
    pipe.flush()


def _read(answer: bytes, errors: str, returncode: int, request: dict[str, object]) -> CsvAnswer:
    if returncode == 0:
        said = json.loads(answer)
        if "csv" in said:
            return CsvAnswer(**said)
        kinds = {kind.__name__: kind for kind in (ValueError, MemoryError, ImportError)}
        raise kinds[said["error"]](said["message"])
    if returncode == -signal.SIGALRM:
        raise TimeoutError(_too_late(request["time_limit_s"]))
    if returncode < 0 or "MemoryError" in errors or "bad_alloc" in errors:
        raise MemoryError(f"the query needs more than {request['max_bytes']:,} bytes of memory")
    raise OSError(
        f"the process of the query ended with exit status {returncode}: "
        f"{errors.strip()[-_LAST_CHARACTERS:]}"
    )


def _too_late(time_limit_s: object) -> str:
    return f"the query did not finish in {time_limit_s:g} s"
