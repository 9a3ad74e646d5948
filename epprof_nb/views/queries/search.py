"""Search by regular expression over the names of ops, API calls and activities."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.util.format import shorten
from epprof_nb.views.queries.event_fields import PREFIXES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.data.table import Table
    from epprof_nb.views.view_model import ViewModel

Ints = npt.NDArray[np.int64]

_PREFIXES: tuple[str, ...] = ("op", "api", "act")
_PATTERN_CHARACTERS = 400
_NAME_CHARACTERS = 2_000
_SECONDS = 3.0
_MATCHER = """
import json, re, sys
pattern, ignore, names = json.load(sys.stdin)
found = re.compile(pattern, re.IGNORECASE if ignore else 0).search
json.dump([i for i, name in enumerate(names) if found(name)], sys.stdout)
"""


def matching(prepared: ViewModel, pattern: str) -> dict[str, Ints]:
    """Return the rows of each table whose name matches, ascending.

    Events that have no place in the timeline are left out.

    Parameters
    ----------
    prepared
        The profile.
    pattern
        A regular expression as of `re`; where it has no capital letter, case does not matter.

    Raises
    ------
    ValueError
        For a pattern that is no regular expression, is too long, or takes too long; the message
        is for the person who typed it.
    """
    places = prepared.layout.places()
    texts: dict[str, int] = {}
    tables: dict[str, tuple[Table, Ints]] = {}
    for prefix in _PREFIXES:
        table = prepared.profile.tables[PREFIXES[prefix]]
        own = [
            texts.setdefault(shorten(text, _NAME_CHARACTERS), len(texts))
            for text in table.names("name").categories
        ]
        tables[prefix] = table, np.array(own, np.int64)
    hits = np.zeros(len(texts), np.bool_)
    hits[find(list(texts), pattern)] = True
    found: dict[str, Ints] = {}
    for prefix, (table, places_of) in tables.items():
        # A missing name, code -1, leads to the last place: no match.
        by_code = np.append(hits[places_of], np.False_)
        inside = by_code[table.names("name").codes]
        found[prefix] = np.flatnonzero(inside & places[prefix].drawn)
    return found


def find(texts: Sequence[str], pattern: str, *, ignore_case: bool | None = None) -> list[int]:
    """Return which of `texts` the pattern is found in; ValueError as for `matching`.

    Where it is not said whether case matters, it does for a pattern with a capital letter.
    """
    if not pattern:
        return []
    if len(pattern) > _PATTERN_CHARACTERS:
        raise ValueError(f"A pattern has at most {_PATTERN_CHARACTERS} characters.")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"Not a regular expression: {error}.") from error
    # A capital after a backslash is a class of characters, not a letter to be found.
    capitals = re.search(r"[A-Z]", re.sub(r"\\.", "", pattern))
    ignore = not capitals if ignore_case is None else ignore_case
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
