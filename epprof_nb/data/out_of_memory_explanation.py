"""Facts about an out-of-memory error: the request, the free memory, and what holds the rest.

They are numbers and names, which keep no objects of the user. All sizes are in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

Scope: TypeAlias = Literal["variable", "output", "traceback", "earlier", "object"]
"""Leads to an array: a variable, an output of a cell, the traceback of the error, a frame that an
earlier error keeps, or an unknown object."""


class Place(NamedTuple):
    """A line of code: its cell or file, number, text, and function ("" outside of functions)."""

    file: str
    line: int
    text: str
    function: str


class Pool(NamedTuple):
    """Memory that a library holds on a device, in bytes.

    Attributes
    ----------
    library
        Its name, as shown.
    in_use
        Bytes that arrays use.
    held
        Bytes that the library has from the driver.
    """

    library: str
    in_use: int
    held: int


@dataclass(slots=True)
class Holder:
    """Arrays that a name leads to, and to which no earlier one leads.

    Attributes
    ----------
    name, where
        Name that leads to them, as ``"cache"``, and where it is, as text; `name` is "" for objects
        that no name leads to.
    kind
        ``""``, ``"parameters"``, ``"gradients"``, ``"optimizer state"`` or ``"saved for the
        backward pass"``.
    scope
        See `Scope`.
    nbytes, buffers
        Bytes and number of the buffers.
    largest, largest_address
        Shape and type of an array of the largest buffer, and its address.
    also
        Other names of the array of the largest buffer.
    """

    name: str
    where: str
    kind: str
    scope: Scope
    nbytes: int = 0
    buffers: int = 0
    largest: str = ""
    largest_address: int = -1
    also: tuple[str, ...] = ()
    _largest_bytes: int = field(default=-1, repr=False)

    def add(self, nbytes: int, form: str, address: int) -> None:
        """Count a buffer, of which an array has the shape and type `form`."""
        self.nbytes += nbytes
        self.buffers += 1
        if nbytes > self._largest_bytes:
            self._largest_bytes, self.largest, self.largest_address = nbytes, form, address


@dataclass(slots=True)
class FreeMemory:
    """Free memory at the time of the failure, in bytes.

    Attributes
    ----------
    total
        Free bytes in all pieces, within the limit.
    largest
        Size of the largest piece that one allocation can have; None if unknown.
    pieces
        Number of pieces; None if unknown.
    """

    total: int
    largest: int | None = None
    pieces: int | None = None


@dataclass(slots=True)
class Explanation:
    """Numbers and names of an out-of-memory error. All sizes are in bytes.

    Attributes
    ----------
    device
        ``"cuda:0"`` and so on, or ``"host device"``.
    library
        Library whose allocation failed; "" if unknown.
    requested
        Bytes that were requested; None if unknown.
    requested_at
        Innermost line of the user's code; None if there is none.
    called_at
        Lines of the user's code that led there, the innermost first, each line of a recursion once.
    raised_as
        Name of the exception that the user sees, if the error is its cause or context.
    limit, total
        What may be used, and the size of the device; None if unknown.
    free
        Free memory at the failure; None if unknown.
    pools
        Memory by library.
    rest
        Bytes of the device in use by no pool that is known; None if unknown.
    holders
        Holders, most bytes first.
    unheld
        Bytes in use by torch that no array of Python has.
    waiting
        Bytes that were released before the failure, but that torch cannot use yet.
    released
        Bytes in use at the failure that were released before the end of the cell.
    is_complete
        Whether the search for holders ended before its time limit.
    notes
        Reasons why something is unknown.
    """

    device: str
    library: str
    requested: int | None
    requested_at: Place | None = None
    called_at: list[Place] = field(default_factory=list)
    raised_as: str = ""
    limit: int | None = None
    total: int | None = None
    free: FreeMemory | None = None
    pools: list[Pool] = field(default_factory=list)
    rest: int | None = None
    holders: list[Holder] = field(default_factory=list)
    unheld: int = 0
    waiting: int = 0
    released: int = 0
    is_complete: bool = True
    notes: list[str] = field(default_factory=list)
    chained: int = 0

    def held_by(self, scope: Scope) -> int:
        """Return the bytes that are held only by the traceback, or by outputs."""
        return sum(holder.nbytes for holder in self.holders if holder.scope == scope)

    @property
    def in_use(self) -> int:
        """Bytes in use at the failure, as far as pools and holders report them."""
        by_pools = sum(pool.in_use for pool in self.pools) + (self.rest or 0)
        return max(by_pools, sum(holder.nbytes for holder in self.holders) + self.unheld)

    @property
    def exceeds_limit(self) -> bool:
        """Whether more was requested than may be used in all, so that nothing to release helps."""
        if self.requested is None or self.limit is None:
            return False
        return self.requested > self.limit

    @property
    def is_fragmented(self) -> bool | None:
        """Whether enough memory is free, but in pieces that are too small; None if unknown."""
        free = self.free
        if free is None or self.requested is None or free.largest is None:
            return None
        return free.total >= self.requested > free.largest
