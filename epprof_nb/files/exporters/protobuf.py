"""Messages in the wire format of Protocol Buffers, encoded many at a time.

The library builds each message as objects of Python, which takes 40 times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import BoolArray, IntArray

_VARINT, _DELIMITED = 0, 2
"""Types of fields: an integer of 7 bits per byte, and content after its length."""


class Messages:
    """Messages with the same fields, one per row; a field may be absent from some rows.

    Parameters
    ----------
    rows
        Number of messages.
    tails
        Encoded fields that end each message; None for none. A message that contains these as
        their last field ends with them, too.

    Attributes
    ----------
    sizes
        int64 array, one value per row: bytes of the message.

    Examples
    --------
    >>> inner = Messages(2, tails=[b"", bytes([16, 7])])
    >>> inner.integer(1, np.array([300, -1]), np.array([True, False]))
    >>> outer = Messages(2)
    >>> outer.message(3, inner)
    >>> outer.encoded().hex(" ")
    '1a 03 08 ac 02 1a 02 10 07'
    """

    def __init__(self, rows: int, tails: Sequence[bytes] | None = None) -> None:
        self._rows = rows
        self._parts: list[tuple[npt.NDArray[np.uint8], IntArray]] = []
        self._tails = b"".join(tails or ())
        self._tail_sizes: IntArray = (
            np.fromiter(map(len, tails), np.int64, rows) if tails else np.zeros(rows, np.int64)
        )
        self.sizes = self._tail_sizes

    def integer(
        self, number: int, values: npt.NDArray[Any] | int, present: BoolArray | None = None
    ) -> None:
        """Append a field with an integer or an enumerator; None: it is present in all rows."""
        self._add_varints(number << 3 | _VARINT, present)
        self._add_varints(values, present)

    def message(self, number: int, messages: Messages, present: BoolArray | None = None) -> None:
        """Append a field with a message; None: it is present in all rows."""
        self._add_varints(number << 3 | _DELIMITED, present)
        self._add_varints(messages.sizes, present)
        for content, sizes in messages._parts:
            self._add(content, sizes, present)
        if messages._tails:
            self._tails, self._tail_sizes = messages._tails, messages._tail_sizes
            self.sizes = self.sizes + self._tail_sizes

    def encoded(self) -> bytes:
        """Return all messages, one after the other and without their lengths."""
        width = sum(content.shape[1] for content, _ in self._parts)
        table, used = np.empty((self._rows, width), np.uint8), np.empty((self._rows, width), bool)
        at = 0
        for content, sizes in self._parts:
            end = at + content.shape[1]
            table[:, at:end] = content
            used[:, at:end] = np.arange(end - at) < sizes[:, None]
            at = end
        body = table[used]
        if not self._tails:
            return body.tobytes()
        lengths = np.stack([self.sizes - self._tail_sizes, self._tail_sizes], axis=1).ravel()
        is_body = np.repeat(np.tile([True, False], self._rows), lengths)
        whole = np.empty(len(is_body), np.uint8)
        whole[is_body] = body
        whole[~is_body] = np.frombuffer(self._tails, np.uint8)
        return whole.tobytes()

    def _add_varints(self, values: npt.NDArray[Any] | int, present: BoolArray | None) -> None:
        # Negative integers are those of 64 bits with the same bits.
        unsigned = np.atleast_1d(values).astype(np.int64).view(np.uint64)
        width = max((int(unsigned.max(initial=0)).bit_length() + 6) // 7, 1)
        groups = unsigned[:, None] >> (np.arange(width, dtype=np.uint64) * np.uint64(7))
        sizes = np.maximum(np.count_nonzero(groups, axis=1), 1)
        continues = np.arange(width) < sizes[:, None] - 1
        content = (groups & np.uint64(0x7F)).astype(np.uint8) | (continues.astype(np.uint8) << 7)
        self._add(content, np.broadcast_to(sizes, self._rows), present)

    def _add(
        self, content: npt.NDArray[np.uint8], sizes: IntArray, present: BoolArray | None
    ) -> None:
        """Append the first bytes of each row of `content`; one row stands for all."""
        sizes = sizes if present is None else sizes * present
        self._parts.append((content, sizes))
        self.sizes = self.sizes + sizes
