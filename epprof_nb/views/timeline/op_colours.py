"""Colours of ops in pictures of the timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.util import palette

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.view_model import ViewModel


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
