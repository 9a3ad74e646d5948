"""The tree of paths for the viewer: the largest of it, the rest put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.data.schema import MISSING
from epprof_nb.util.format import shorten

if TYPE_CHECKING:
    import pandas as pd

    from epprof_nb.views.view_model import ViewModel

NODES = 1500
"""Paths that are sent; below each of them one more may stand for those left out."""
_CHARACTERS = 600
_SUMS = ("count", "device_ns", "self_device_ns", "host_ns", "kernels", "bytes")


def tree(prepared: ViewModel, limit: int = NODES) -> dict[str, Any]:
    """Return the paths of a profile (see `epprof_nb.analysis.by_path.by_path`) as JSON columns.

    Parameters
    ----------
    prepared
        The profile.
    limit
        How many paths to return at most: those with the most device and host time.

    Returns
    -------
    tree
        ``names``, a table of strings; ``parent`` (position of the node above, -1 for the first;
        parents come before their children), ``level`` and ``name`` (positions in ``names``), the
        sums, and ``others``: how many paths a node stands for, 0 for a path itself.
        ``paths`` is how many there are.
    """
    frame = prepared.path_tree
    parent = frame["parent"].fillna(MISSING).to_numpy(np.int64)
    kept = _largest(frame, parent, limit)
    number = np.full(len(frame) + 1, MISSING, np.int64)
    number[kept] = np.arange(len(kept))
    # Only the uppermost of what is left out: its sums hold all below it.
    left = np.flatnonzero((number[:-1] == MISSING) & (number[parent] != MISSING))
    above, group = np.unique(number[parent[left]], return_inverse=True)
    sums = {}
    for name in _SUMS:
        values = frame[name].to_numpy(np.int64)
        rest = np.zeros(len(above), np.int64)
        np.add.at(rest, group, values[left])
        sums[name] = np.append(values[kept], rest).tolist()
    names: dict[str, int] = {}

    def codes(column: str, of_rest: str) -> list[int]:
        texts = frame[column].astype(object).to_numpy()[kept].tolist()
        texts += [of_rest] * len(above)
        return [names.setdefault(shorten(str(text), _CHARACTERS), len(names)) for text in texts]

    return {
        "parent": [*number[parent[kept]].tolist(), *above.tolist()],
        "level": codes("level", "other"),
        "name": codes("name", "(other)"),
        **sums,
        "others": [*[0] * len(kept), *np.bincount(group, minlength=len(above)).tolist()],
        "names": list(names),
        "paths": len(frame),
    }


def _largest(
    frame: pd.DataFrame, parent: npt.NDArray[np.int64], limit: int
) -> npt.NDArray[np.int64]:
    """Return the rows to keep, ascending; with a row also all rows above it."""
    device, host = (frame[name].to_numpy(np.float64) for name in ("device_ns", "host_ns"))
    weight = device / max(device.max(initial=0), 1) + host / max(host.max(initial=0), 1)
    depth = frame["depth"].to_numpy(np.int64)
    for level in range(int(depth.max(initial=0)), 0, -1):
        here = np.flatnonzero(depth == level)
        # Work on other threads may exceed what is above it: nothing outweighs its parent.
        np.maximum.at(weight, parent[here], weight[here])
    order = np.lexsort((depth, -weight))
    return np.sort(order[:limit])
