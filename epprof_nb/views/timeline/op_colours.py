"""Hues of operators, modules and functions, and colours of ops in pictures of the timeline."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.util import palette

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.view_model import ViewModel

_SEED = b"63229 "
"""Chosen so that the most common operators of ONNX, operators of ATen and modules of PyTorch, eight
or nine of each, have different hues."""


def operator_hues(names: Sequence[str]) -> list[int]:
    """Return the index in `epprof_nb.util.palette.OPERATORS` of the hue of each name.

    A name has the same hue in all profiles, unless a name with more time has it already. The first
    names, one per hue, have different hues; further names share them.

    Parameters
    ----------
    names
        The names, those with the most time first.

    Examples
    --------
    >>> operator_hues(["forward"]), operator_hues(["backward"])
    ([7], [7])
    >>> operator_hues(["forward", "backward"])
    [7, 0]
    """
    count = len(palette.OPERATORS)
    hues = [zlib.crc32(_SEED + name.encode(errors="replace")) % count for name in names]
    leading, rest = hues[:count], hues[count:]
    free = iter([hue for hue in range(count) if hue not in leading])
    # Only a name whose hue is taken gets another one, so that the others keep theirs.
    is_taken = [hue in leading[:rank] for rank, hue in enumerate(leading)]
    own = [next(free) if taken else hue for hue, taken in zip(leading, is_taken, strict=True)]
    return own + rest


def op_colours(view_model: ViewModel, kinds: IntArray, hues: IntArray) -> IntArray:
    """Return the code in `COLOURS` of each op's colour.

    Parameters
    ----------
    view_model
        The profile.
    kinds
        int64 array: kind of activity that takes most of the device time of each op.
    hues
        int64 array: hue of the operator of each op; see `epprof_nb.views.queries.window`. Used if
        there is no device work.
    """
    codes = np.where(kinds >= len(palette.OPS), 0, kinds)
    if view_model.colours_operators:
        codes = np.where(hues >= 0, len(palette.OPS) + hues, codes)
    return codes


COLOURS = {**palette.OPS, **dict(enumerate(palette.NODES, len(palette.OPS)))}
"""Colours of ops by code."""
