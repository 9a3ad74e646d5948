"""Statements of a manifest on stored tables: their rows, digests, info and sources.

They may be from an untrusted source, so nothing is believed before it has been checked.
"""

from __future__ import annotations

import json
import re
import struct
import zlib

import numpy as np
import pyarrow as pa

from epprof_nb.data.schema import TABLES
from epprof_nb.data.table import row_bytes
from epprof_nb.files.epprof.info_schema import check_info, is_text

DAMAGE = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    pa.ArrowException,
    struct.error,
    zlib.error,
)
"""Exceptions that json and pyarrow raise for damaged or malicious data."""
MAX_MANIFEST_BYTES = 64 * 2**20
_MAX_RATIO, _SMALL_BYTES = 300, 64 * 2**20
"""Maximum ratio of memory to file. Recordings have 5 to 50, equal rows 1,500 and more."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def to_json(value: object) -> bytes:
    """Encode as JSON; characters that UTF-8 cannot encode become escapes, as in the tables."""
    text = json.dumps(value, default=_plain, ensure_ascii=False)
    return _LONE_SURROGATE.sub(lambda found: rf"\\u{ord(found[0]):04x}", text).encode()


def _plain(value: object) -> object:
    """Convert values that JSON does not support, so that saving never fails for the info."""
    return value.item() if isinstance(value, np.generic) else str(value)


def stated(tables: object) -> tuple[dict[str, tuple[int, str]], int]:
    """Check what a manifest states about its tables.

    Returns
    -------
    stated
        Rows and SHA-256 digest of each known table that is stated.
    needed
        Memory of all rows in bytes, without their texts and optional columns.

    Raises
    ------
    ValueError
        If a table is not described as it should be.
    """
    found: dict[str, tuple[int, str]] = {}
    needed = 0
    for schema in TABLES:
        match tables.get(schema.name) if isinstance(tables, dict) else None:
            case {"rows": int(rows), "sha256": str(digest)} if rows >= 0:
                found[schema.name] = rows, digest
                # The pages of optional columns are checked before they are read.
                needed += rows * row_bytes(c for c in schema.columns if not c.optional)
            case None:
                continue
            case _:
                raise ValueError(f"manifest.json does not describe the table {schema.name}")
    return found, needed


def plausible_bytes(size: int, needed: int) -> int:
    """Return the most memory that tables with `size` bytes in files may need; ValueError if less.

    Parameters
    ----------
    size
        Bytes of the files.
    needed
        Memory that their stated rows need, in bytes.
    """
    plausible = max(_MAX_RATIO * size, _SMALL_BYTES)
    if needed > plausible:
        raise ValueError(
            f"its {size:,} bytes claim to need {needed:,} bytes in memory, more than {_MAX_RATIO} "
            "times their size, which no recording does"
        )
    return plausible


def check_texts(info: object, sources: object) -> None:
    """Check the info and the sources of a manifest; ValueError says what is wrong."""
    if not isinstance(info, dict) or not isinstance(sources, dict):
        raise ValueError("manifest.json lacks the info or the sources")  # noqa: TRY004 - damage
    check_info(info)
    if not all(is_text(text) for item in sources.items() for text in item):
        raise ValueError("the source of a cell is not text")
