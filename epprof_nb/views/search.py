"""Search by regular expression over the names of ops, API calls and activities."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from epprof_nb.views.units import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.table import Table
    from epprof_nb.views.prepared import Prepared

Ints = npt.NDArray[np.int64]
Prefix = Literal["op", "api", "act"]

_TABLES: dict[Prefix, str] = {"op": "ops", "api": "api_calls", "act": "activities"}
_PATTERN_CHARACTERS = 400
_NAME_CHARACTERS = 2_000
_SECONDS = 3.0
_MATCHER = """
import json, re, sys
pattern, ignore, names = json.load(sys.stdin)
found = re.compile(pattern, re.IGNORECASE if ignore else 0).search
json.dump([i for i, name in enumerate(names) if found(name)], sys.stdout)
"""


class Matches:
    """What one pattern found, in the order of time.

    Parameters
    ----------
    prepared
        The profile.
    pattern
        A regular expression as of `re`; where it has no capital letter, case does not matter.

    Attributes
    ----------
    count
        Number of events whose name matches.

    Raises
    ------
    ValueError
        For a pattern that is no regular expression, is too long, or takes too long; the message
        is for the person who typed it.
    """

    def __init__(self, prepared: Prepared, pattern: str) -> None:
        self._prepared = prepared
        self.rows = matching(prepared, pattern)
        self._starts: dict[Prefix, Ints] = {}
        for prefix, rows in self.rows.items():
            start = prepared.profile.tables[_TABLES[prefix]]["start_ns"][rows]
            if np.any(start[1:] < start[:-1]):
                order = np.argsort(start, kind="stable")
                self.rows[prefix], start = rows[order], start[order]
            self._starts[prefix] = start
        self.count = sum(len(rows) for rows in self.rows.values())

    def number_at(self, time_ns: float) -> int:
        """Return the number, from 0, of the first match that starts at `time_ns` or later.

        The first one of all where none does, as a search goes round.
        """
        before = sum(int(np.searchsorted(s, time_ns, side="left")) for s in self._starts.values())
        return before if before < self.count else 0

    def nth(self, number: int) -> tuple[Prefix, int]:
        """Return the table and row of match `number`, from 0 in the order of starts.

        Of matches that start together, ops come before API calls and these before activities.
        """
        low = min(int(s[0]) for s in self._starts.values() if len(s))
        high = max(int(s[-1]) for s in self._starts.values() if len(s))
        # The smallest time up to which more than `number` matches have started.
        while low < high:
            middle = (low + high) // 2
            if self._until(middle) > number:
                high = middle
            else:
                low = middle + 1
        left = number - self._until(low - 1)
        for prefix, starts in self._starts.items():
            first, end = np.searchsorted(starts, (low, low + 1))
            if left < end - first:
                return prefix, int(self.rows[prefix][first + left])
            left -= int(end - first)
        raise IndexError(number)

    def _until(self, time_ns: int) -> int:
        starts = self._starts.values()
        return sum(int(np.searchsorted(s, time_ns, side="right")) for s in starts)


def matching(prepared: Prepared, pattern: str) -> dict[Prefix, Ints]:
    """Return the rows of each table whose name matches; ValueError as for `Matches`.

    Events that have no place in the timeline are left out.
    """
    layout = prepared.layout
    places = {"op": layout.ops, "api": layout.api_calls, "act": layout.activities}
    texts: dict[str, int] = {}
    tables: dict[Prefix, tuple[Table, Ints]] = {}
    for prefix, name in _TABLES.items():
        table = prepared.profile.tables[name]
        own = [
            texts.setdefault(shorten(text, _NAME_CHARACTERS), len(texts))
            for text in table.names("name").categories
        ]
        tables[prefix] = table, np.array(own, np.int64)
    hits = np.zeros(len(texts), np.bool_)
    hits[find(list(texts), pattern)] = True
    found: dict[Prefix, Ints] = {}
    for prefix, (table, places_of) in tables.items():
        # A missing name, code -1, leads to the last place: no match.
        by_code = np.append(hits[places_of], np.False_)
        inside = by_code[table.names("name").codes]
        found[prefix] = np.flatnonzero(inside & (places[prefix].lane >= 0))
    return found


def find(texts: Sequence[str], pattern: str) -> list[int]:
    """Return which of `texts` the pattern is found in; ValueError as for `Matches`."""
    if not pattern:
        return []
    if len(pattern) > _PATTERN_CHARACTERS:
        raise ValueError(f"A pattern has at most {_PATTERN_CHARACTERS} characters.")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"Not a regular expression: {error}.") from error
    # A capital after a backslash is a class of characters, not a letter to be found.
    ignore = not re.search(r"[A-Z]", re.sub(r"\\.", "", pattern))
    if re.fullmatch(r"[\w\s,:;<>=!@#%&'\"/-]*", pattern):
        plain = pattern.casefold() if ignore else pattern
        return [i for i, t in enumerate(texts) if plain in (t.casefold() if ignore else t)]
    # A pattern can take longer than the age of the world, and `re` knows no time limit: a
    # process of its own can be ended, and holds up nothing here.
    try:
        answer = subprocess.run(  # noqa: S603  (our own program, the pattern is its input)
            [sys.executable, "-I", "-S", "-c", _MATCHER],
            input=json.dumps([pattern, ignore, list(texts)]),
            capture_output=True,
            encoding="utf-8",
            timeout=_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        raise ValueError(
            f"The pattern took more than {_SECONDS:.0f} s: repeat less within what is repeated."
        ) from error
    except (OSError, subprocess.CalledProcessError) as error:
        raise ValueError(
            "A pattern is searched for by a Python process of its own, which could not be run "
            f"({type(error).__name__}). Plain words can be searched for."
        ) from error
    positions: Any = json.loads(answer.stdout)
    return [int(i) for i in positions]
