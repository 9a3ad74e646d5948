"""The events of a Chrome trace in lists of bounded size, whatever the size of the file.

A piece of the file is cut after its last complete event and parsed at once. That event ends
at the last "},", if everything up to there can be parsed. Otherwise NumPy finds it by counting
brackets outside strings.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import orjson

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.files.foreign_files import START_BYTES, why_no_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from epprof_nb.arrays.types import IntArray

T = TypeVar("T")
MAX_EVENT_BYTES = 64 * 2**20
"""Maximum size of an event, and of the text before and after the events."""
_KEY = re.compile(rb'(?<!\\)"traceEvents"[ \t\r\n]*+:[ \t\r\n]*+\[')
_LIST_DEPTH = 2
"""Depth within a list that is a value of the outermost object."""
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPACE = b" \t\r\n"
# Skips the error text, which takes longer.
_LENIENT = json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined]


class _State(NamedTuple):
    """State of a scan between two pieces."""

    in_string: bool = False
    escaped: bool = False
    depth: int = 0


def _scan(data: bytes | bytearray | memoryview, state: _State) -> tuple[IntArray, IntArray, _State]:
    """Find the brackets outside strings.

    Returns
    -------
    positions, depths
        int64 arrays: position of each bracket, and the depth of nesting after it.
    state
        The state at the end.
    """
    codes = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(codes == ord('"'))
    slashes = np.flatnonzero(codes == ord("\\"))
    escaped_next = False
    if state.escaped and len(quotes) and quotes[0] == 0:
        quotes = quotes[1:]
    if len(slashes):
        # In a run of backslashes, every other one escapes the next character.
        starts = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)
        run = np.cumsum(np.diff(slashes, prepend=-2) != 1) - 1
        offset = np.arange(len(slashes)) - starts[run]
        if state.escaped and slashes[0] == 0:
            offset[run == 0] += 1
        escaping = slashes[offset % 2 == 0]
        quotes = quotes[~np.isin(quotes, escaping + 1, assume_unique=True)]
        escaped_next = bool(len(escaping)) and int(escaping[-1]) == len(codes) - 1
    elif state.escaped and not len(codes):
        escaped_next = True
    folded = codes | 0x20  # "[" becomes "{", and "]" becomes "}"
    opening = folded == ord("{")
    positions = np.flatnonzero(opening | (folded == ord("}")))
    inside = (np.searchsorted(quotes, positions) + int(state.in_string)) % 2 == 1
    positions = positions[~inside]
    depths = state.depth + np.cumsum(np.where(opening[positions], 1, -1))
    depth = int(depths[-1]) if len(depths) else state.depth
    in_string = bool((len(quotes) + int(state.in_string)) % 2)
    return positions, depths, _State(in_string, escaped_next, depth)


class JsonEvents:
    """Events of a Chrome trace: a JSON array of events, or an object with ``traceEvents``.

    Parameters
    ----------
    pieces
        The content of the file.

    Attributes
    ----------
    head
        The text before the first event.
    metadata
        The object without its events; complete after the iteration.
    invalid, oversized
        Number of events that are not JSON objects, or are larger than `MAX_EVENT_BYTES`.
    complete
        Whether the end of the events was found.

    Raises
    ------
    ProfileFileError
        If the content does not have this form.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self.invalid = self.oversized = 0
        self.complete = False
        self.metadata: dict[str, Any] = {}
        self._make: Callable[[Any], Any] = _object
        self._quick: Callable[[bytes], list[Any] | None] | None = None
        self.head, self._rest = self._find_events()

    def _find_events(self) -> tuple[bytes, bytes]:
        text, state, since = bytearray(), _State(), 0
        for piece in self._pieces:
            scanned = len(text)
            text += piece
            if not scanned:
                start = piece.removeprefix(b"\xef\xbb\xbf").lstrip(_SPACE)
                if start.startswith(b"["):
                    at = text.index(b"[") + 1
                    return bytes(text[:at]), bytes(text[at:])
                if start and not start.startswith(b"{"):
                    break
                if not start:
                    text.clear()
                    continue
            positions, depths, state = _scan(piece, state)
            lists = positions[depths == _LIST_DEPTH] + scanned
            for match in _KEY.finditer(text, since):
                at = int(np.searchsorted(lists, match.end() - 1))
                if at < len(lists) and lists[at] == match.end() - 1:
                    return bytes(text[: match.end()]), bytes(text[match.end() :])
            # No bracket is between the key and its list.
            since = int(positions[-1]) + scanned + 1 if len(positions) else since
            if len(text) > MAX_EVENT_BYTES:
                break
        raise ProfileFileError(why_no_trace(bytes(text[:START_BYTES])))

    def __iter__(self) -> Iterator[list[dict[str, Any]]]:
        return self.lists(_object)

    def lists(
        self,
        make: Callable[[Any], T | None],
        quick: Callable[[bytes], list[T] | None] | None = None,
    ) -> Iterator[list[T]]:
        """Iterate over lists of events.

        Parameters
        ----------
        make
            Function of a parsed event that returns the entry for the lists; None if the object is
            not an event.
        quick
            Function that parses an array of events; None if it cannot, and `make` is used.
        """
        self._make, self._quick = make, quick
        state: _State | None = _State()
        pending, skipping, is_last = bytearray(), False, False
        piece: bytes | None = self._rest
        while piece is not None:
            if not skipping and not is_last and len(pending) < len(piece):
                text = bytes(pending) + piece
                # If the text up to here can be parsed, it consists of complete events.
                end = text.rfind(b"},") + 1
                events = self._events(text[:end]) if end else None
                if events is not None:
                    yield self._valid(events)
                    pending, state = bytearray(text[end:]), None
                    piece = next(self._pieces, None)
                    if piece is None:
                        piece, pending, state, is_last = text[end:], bytearray(), _State(), True
                    continue
            if state is None:  # the pending text was not scanned
                piece, pending, state = bytes(pending) + piece, bytearray(), _State()
            positions, depths, state = _scan(piece, state)
            closing = np.flatnonzero(depths < 0)
            end = int(positions[closing[0]]) if len(closing) else -1
            boundaries = positions[: closing[0] if len(closing) else None]
            ends = boundaries[depths[: len(boundaries)] == 0]
            # At depth 0, an opening bracket has depth 1: only the last bracket of an event has 0.
            start = 0
            if skipping and (len(ends) or end >= 0):
                start, skipping = int(ends[0]) + 1 if len(ends) else end, False
            stop = end if end >= 0 else int(ends[-1]) + 1 if len(ends) else -1
            if stop >= 0:
                pending += piece[start:stop]
                yield from self._parsed(bytes(pending))
                pending = bytearray()
            if end >= 0:
                self.complete = True
                self._finish(piece[end + 1 :])
                return
            if not skipping:
                pending += piece[max(stop, 0) :]
            if len(pending) > MAX_EVENT_BYTES:
                self.oversized += 1
                pending, skipping = bytearray(), True
            piece = next(self._pieces, None)
        self.invalid += bool(pending.strip(_SPACE + b",")) or skipping
        self._finish(b"")

    def _parsed(self, text: bytes) -> Iterator[list[Any]]:
        text = text.strip(_SPACE + b",")
        if not text:
            return
        events = self._events(text)
        yield self._valid(list(self._one_by_one(text)) if events is None else events)

    def _events(self, text: bytes) -> list[Any] | None:
        """Parse values that are separated by commas; None if one is invalid or incomplete."""
        array = b"[" + text.strip(_SPACE + b",") + b"]"
        if self._quick is not None and (events := self._quick(array)) is not None:
            return events
        try:
            return [self._make(value) for value in orjson.loads(array)]
        except orjson.JSONDecodeError:
            return None

    def _valid(self, events: list[Any]) -> list[Any]:
        valid = [event for event in events if event is not None]
        self.invalid += len(events) - len(valid)
        return valid

    def _one_by_one(self, text: bytes) -> Iterator[Any]:
        positions, depths, _ = _scan(text, _State())
        start = 0
        for end in (positions[depths == 0] + 1).tolist():
            yield self._make(_loads(text[start:end].strip(_SPACE + b",")))
            start = end
        if text[start:].strip(_SPACE + b","):
            yield None

    def _finish(self, tail: bytes) -> None:
        for piece in self._pieces:
            tail += piece
            if len(tail) > MAX_EVENT_BYTES:
                tail = b""
                break
        for end in (tail, b"}"):
            found = _loads(self.head + b"]" + end)
            if isinstance(found, dict):
                self.metadata = {k: v for k, v in found.items() if k != "traceEvents"}
                return


def _object(value: object) -> dict[str, Any] | None:
    return value if type(value) is dict else None


def _loads(text: bytes) -> Any:  # noqa: ANN401
    """Parse JSON as leniently as Python does, which accepts NaN; None if it is invalid.

    Lone surrogates, which UTF-8 cannot encode, become U+FFFD.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        plain = text.decode("utf-8", "replace").strip(" \t\r\n")
        found, end = _LENIENT(plain, 0)
        if end < len(plain):
            return None
        if _SURROGATE_ESCAPE.search(text):
            found = json.loads(_SURROGATE.sub("\ufffd", json.dumps(found, ensure_ascii=False)))
    except (StopIteration, ValueError, RecursionError):
        return None
    return found
