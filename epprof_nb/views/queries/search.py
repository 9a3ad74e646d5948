r"""Search by regular expression over the names of ops, API calls and activities.

Patterns use RE2 syntax. RE2 matches in linear time, so no pattern can block the kernel, and memory
is bounded. In return it has no look-around and no back-references, and ``\w``, ``\d`` and ``\b``
match ASCII characters only.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.data.kernel_names import short_name
from epprof_nb.util.format import shorten
from epprof_nb.views.queries.event_fields import PREFIXES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table
    from epprof_nb.views.view_model import ViewModel


_MAX_PATTERN_LENGTH = 400
_MAX_NAME_LENGTH = 2_000
_MAX_MEMORY_BYTES = 2 << 20
_MAX_SECONDS = 3.0
_LOOK_AROUND = ("(?=", "(?!", "(?<=", "(?<!")


def matching_rows(view_model: ViewModel, pattern: str) -> dict[str, IntArray]:
    """Return the rows of each table whose name matches, ascending, by prefix.

    Events that are not drawn on the timeline are left out.

    Parameters
    ----------
    view_model
        The profile.
    pattern
        A regular expression in RE2 syntax. It ignores case unless it contains a capital letter.

    Raises
    ------
    ValueError
        If the pattern is invalid, too long or too expensive. The message is for the user.
    """
    layouts = view_model.layout.by_prefix()
    names: dict[str, int] = {}
    tables: dict[str, tuple[Table, IntArray]] = {}
    for prefix, table_name in PREFIXES.items():
        table = view_model.profile.tables[table_name]
        full = table.names("name").categories
        # A search finds a kernel by its full name and by the short one that is shown.
        short = map(short_name, full) if prefix == "act" else full
        name_ids = [
            names.setdefault(shorten(name, _MAX_NAME_LENGTH), len(names))
            for name in (*full, *short)
        ]
        tables[prefix] = table, np.array(name_ids, np.int64).reshape(2, -1)
    is_match = np.zeros(len(names), np.bool_)
    is_match[match_names(list(names), pattern)] = True
    rows: dict[str, IntArray] = {}
    for prefix, (table, name_ids_of) in tables.items():
        # Code -1, a missing name, reads the last value: no match.
        by_code = np.append(is_match[name_ids_of].any(axis=0), np.False_)
        is_match_of = by_code[table.names("name").codes]
        rows[prefix] = np.flatnonzero(is_match_of & layouts[prefix].is_drawn)
    return rows


def match_names(
    names: Sequence[str], pattern: str, *, ignore_case: bool | None = None
) -> list[int]:
    """Return the indices of the names that contain a match of the pattern.

    Parameters
    ----------
    names
        The names to search.
    pattern
        A regular expression in RE2 syntax. An empty one matches nothing.
    ignore_case
        None ignores case unless the pattern contains a capital letter.

    Raises
    ------
    ValueError
        See `matching_rows`.
    """
    if not pattern:
        return []
    if len(pattern) > _MAX_PATTERN_LENGTH:
        raise ValueError(f"A pattern has at most {_MAX_PATTERN_LENGTH} characters.")
    if ignore_case is None:
        # A capital after a backslash is a character class.
        ignore_case = not re.search(r"[A-Z]", re.sub(r"\\.", "", pattern))
    search = _compile(pattern, ignore_case=ignore_case)
    deadline = time.monotonic() + _MAX_SECONDS
    matches = []
    for index, name in enumerate(names):
        if search(_encoded(name)):
            matches.append(index)
        if time.monotonic() > deadline:
            raise ValueError(
                f"The pattern takes more than {_MAX_SECONDS:.0f} s on the names of this profile; "
                "use fewer or smaller repeats."
            )
    return matches


def _compile(pattern: str, *, ignore_case: bool) -> Callable[[bytes], object]:
    import re2  # only where a search needs it: views must work where this import fails

    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    options.max_mem = _MAX_MEMORY_BYTES
    options.never_capture = True
    try:
        search: Callable[[bytes], object] = re2.compile(_encoded(pattern), options).search
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace")
        raise ValueError(_explain(reason, pattern)) from error
    return search


def _encoded(text: str) -> bytes:
    # A name may contain lone surrogates, which strict UTF-8 rejects.
    return text.encode("utf-8", "surrogatepass")


def _is_reversed(part: str) -> bool:
    """Whether a repetition such as ``{3,2}`` has bounds in the wrong order."""
    bounds = re.search(r"{(\d+),(\d+)}", part)
    return bounds is not None and int(bounds[1]) > int(bounds[2])


def _explain(reason: str, pattern: str) -> str:
    """Turn an error of RE2 into a message for the user."""
    what, _, part = reason.partition(": ")
    if what.startswith("pattern too large"):
        return "The pattern is too large; use fewer or smaller repeats."
    if what == "invalid repetition size" and _is_reversed(part):
        return f"Not a regular expression: the minimum of {part} exceeds its maximum."
    if what == "invalid repetition size":
        unsupported = "Repeating more than 1,000 times in total"
    elif what == "invalid perl operator" and part in _LOOK_AROUND:
        unsupported = f"Look-around, {part}...),"
    elif what == "invalid perl operator" and part == "(?P" and "(?P=" in pattern:
        unsupported = "A back-reference, (?P=...),"
    elif what == "invalid escape sequence" and part[1:].isdigit():
        unsupported = f"A back-reference, {part},"
    elif what in {"invalid perl operator", "invalid escape sequence"}:
        unsupported = part
    else:
        return f"Not a regular expression: {reason}."
    return f"{unsupported} is not supported; patterns use RE2 syntax."
