"""The file of a trace: written atomically, compressed if its name says so, with progress."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from epprof_nb.files.atomic_file import replacing
from epprof_nb.util.progress_bar import progress_bar

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

_LEVEL = 1


@contextmanager
def trace_file(
    path: str | os.PathLike[str], total: int, unit: str, *, compressed: tuple[str, ...] = (".gz",)
) -> Iterator[tuple[Any, Any]]:
    """Write a file in place of an earlier one; yield its stream and a progress bar up to `total`.

    Its content is compressed if the suffix of its name is one of `compressed`.
    """
    name = Path(path)
    with (
        replacing(path) as file,
        _compressed(file) if name.suffix in compressed else nullcontext(file) as stream,
        progress_bar(f"Writing {name.name}", total, unit) as bar,
    ):
        yield stream, bar


def _compressed(file: IO[bytes]) -> AbstractContextManager[Any]:
    """Return a stream that compresses into `file`, in a separate thread."""
    from isal import igzip_threaded

    stream: AbstractContextManager[Any] = igzip_threaded.open(  # type: ignore[no-untyped-call]
        file, "wb", compresslevel=_LEVEL, threads=1
    )
    return stream
