"""The process that `epprof_nb.analysis.sql.in_separate_process` starts for one query.

It reads the request and the tables from standard input, limits itself, and writes the answer to
standard output.
"""

from __future__ import annotations

import json
import math
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from epprof_nb.analysis.sql.in_this_process import select

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import IO

_OVERHEAD_BYTES = 128 * 2**20
"""Address space beyond the limit of a query: reserved blocks, and the text of the answer."""
_GRACE_S = 5


def main() -> None:
    """Answer the request on standard input."""
    request, tables = _receive(sys.stdin.buffer)
    is_limited = False
    try:
        # Modules loaded before the limit is set do not count and cannot fail to load.
        csv_of(tables, {**request, "query": "select 'text', 1"})
        _limit(request["max_bytes"], request["time_limit_s"])
        is_limited = True
        answer = csv_of(tables, request)
    except (MemoryError, ImportError) as error:
        no_memory = is_limited or isinstance(error, MemoryError)
        kind = "MemoryError" if no_memory else "ImportError"
        answer = {"error": kind, "message": str(error)}
    except ValueError as error:
        answer = {"error": "ValueError", "message": str(error)[: request["max_chars"]]}
    except Exception as error:  # noqa: BLE001 - of DuckDB, Arrow or pandas, on the values
        message = f"the query failed: {type(error).__name__}: {error}"
        answer = {"error": "ValueError", "message": message[: request["max_chars"]]}
    sys.stdout.write(json.dumps(answer))


def csv_of(tables: Mapping[str, pa.Table], request: Mapping[str, Any]) -> dict[str, object]:
    """Run the query and return the fields of a `CsvAnswer`."""
    rows, characters = request["max_rows"], request["max_chars"]
    frame = select(
        tables,
        request["query"],
        time_limit_s=math.inf,  # the process has one
        max_bytes=request["max_bytes"],
        max_rows=rows + 1,
        max_chars=characters,
        threads=1,
    )
    text = frame.head(rows).to_csv(index=False)
    return {
        "csv": text[:characters],
        "characters": len(text),
        "has_more_rows": len(frame) > rows,
    }


def _receive(pipe: IO[bytes]) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    request = json.loads(pipe.readline())
    tables = {}
    for name in request["tables"]:
        with pa.ipc.open_stream(pipe) as stream:
            tables[name] = stream.read_all()
    return request, tables


def _limit(max_bytes: int, time_limit_s: float) -> None:
    """Limit the memory and the time of this process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = used + max_bytes + _OVERHEAD_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    # If the whole machine is short of memory, the system ends this process, not the notebook.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    # The process that started this one may have ended.
    signal.setitimer(signal.ITIMER_REAL, time_limit_s + _GRACE_S)


if __name__ == "__main__":
    main()
