"""Memory that lies between the launches of a node on a CUDA device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb import _native

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule


def scratch(xp: ArrayModule, shape: tuple[int, ...], dtype: Any) -> Array:  # noqa: ANN401
    """Return an array that one launch of a node writes and later ones read.

    Unlike other memory that a kernel allocates, it may be among the arguments of launches that the
    node repeats; a repeat has another array of this size.
    """
    made = xp.empty(shape, dtype)
    _native.ep_note_scratch(made.data.ptr, made.nbytes)
    return made
