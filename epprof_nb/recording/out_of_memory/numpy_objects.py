"""Objects in arrays of NumPy, which the garbage collector ignores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeGuard

    import numpy.typing as npt

# Subclasses may have members of these names.
_DTYPE, _BASE = (vars(np.ndarray)[name].__get__ for name in ("dtype", "base"))


def has_objects(thing: object) -> TypeGuard[npt.NDArray[Any]]:
    """Whether a thing is an array with objects, also in fields of a structure."""
    return issubclass(type(thing), np.ndarray) and _DTYPE(thing).hasobject


def objects_of(array: npt.NDArray[Any]) -> Iterator[object]:
    """Yield the elements of such an array that are objects, and the array that it is a view of."""
    base = _BASE(array)
    if has_objects(base):
        yield base
    plain = np.ndarray.view(array, np.ndarray)
    if plain.dtype.names is None:
        # Once where an axis repeats one element, as of `np.broadcast_to`.
        yield from plain[(..., *(slice(None if step else 1) for step in plain.strides))].flat
    for name in plain.dtype.names or ():
        if plain.dtype[name].hasobject:
            yield from objects_of(plain[name])
