"""what_if: the table of savings if some work took more or less time, and its factors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.missing_records import lacks_records
from epprof_nb.analysis.base.result_table import (
    OptionalColumn,
    ResultTable,
    categorical,
    objects,
    optional,
)
from epprof_nb.analysis.critical_path.what_if_bounds import BoundedReplay
from epprof_nb.util.format import duration, plural, shorten

if TYPE_CHECKING:
    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.what_if_replay import Side, Target

_ALL = "all of them"
_LARGEST = 1e6
"""Largest factor of any work."""
_LONGEST_NS = 1 << 60
"""Longest time that work may take: sums of a few of these fit in 64 bits. With the largest factor,
these are 19 minutes of the profile."""
_SHOWN, _MOST_NAMES = 60, 5
"""Number of characters of a name, and of names, in a message."""


def what_if_table(
    index: ProfileIndex, changes: Mapping[str, float], on: Side, attribution: Attribution
) -> ResultTable:
    """Return the columns of `Profile.what_if`."""
    replay = BoundedReplay(index, attribution, without_profiler=True)
    targets = [(replay.target(name, on), factor) for name, factor in changes.items()]
    if any(target.waits and factor not in (0, 1) for target, factor in targets):
        raise ValueError("waits can only be removed: their factor is 0")
    _check_product(replay, [*changes], targets)
    names, groups = [*changes], [[change] for change in targets]
    if len(targets) > 1:
        names, groups = [*names, _ALL], [*groups, targets]
    factors = [*changes.values(), *[float("nan")] * (len(groups) - len(targets))]
    if index.cached(lacks_records):  # the critical path is unknown
        names, groups, factors = [], [], []
    found = [replay.savings(group) for group in groups]
    wall = index.profile.wall_ns
    # Work that a damaged file has outside of the profile saves nothing of it.
    low, high, saving = (
        np.array([min(getattr(row, part) or 0, wall) for row in found], np.int64)
        for part in ("low", "high", "ns")
    )
    shorter = np.array([row.without_profiler for row in found], np.int64).reshape(-1, 3)
    new, most, least = (wall - np.minimum(shorter, wall)).T
    is_unknown = np.array([row.ns is None for row in found], np.bool_)
    return ResultTable(
        {
            "changed": objects(names),
            "factor": np.array(factors, np.float64),
            "wall_ns": OptionalColumn(new, is_unknown),
            "wall_low_ns": optional(least),
            "wall_high_ns": optional(most),
            "saving_ns": OptionalColumn(saving, is_unknown),
            "saving_low_ns": low,
            "saving_high_ns": high,
            "limit": categorical([row.limit for row in found]),
            "limit_share": np.array([row.limit_share for row in found], np.float64),
        }
    )


def _check_product(
    replay: BoundedReplay, names: list[str], targets: list[tuple[Target, float]]
) -> None:
    """Check the product of the factors of any work: times in ns have 64 bits."""
    product, parts = replay.largest_product(targets)
    largest = min(_LARGEST, max(_LONGEST_NS // max(replay.longest_ns, 1), 1))
    if product <= largest:
        return
    longest = duration(replay.longest_ns)
    if len(parts) == 1:
        raise ValueError(
            f"the factor of {names[parts[0]]!r} must be from 0 (takes no time) to "
            f"{_number(largest)}, not {_number(product)}, as times in the profile are up to "
            f"{longest} long"
        )
    named = [repr(shorten(names[part], _SHOWN)) for part in parts[:_MOST_NAMES]]
    others = f" and {plural(more, 'other')}" if (more := len(parts) - _MOST_NAMES) > 0 else ""
    raise ValueError(
        f"the factors of {', '.join(named)}{others} multiply to {_number(product)}, as they apply "
        f"to the same work. The largest product is {_number(largest)} for times of up to "
        f"{longest}: use smaller factors, or names that share no work"
    )


def _number(value: float) -> str:
    return f"{value:,}".removesuffix(".0")


def checked_changes(changes: Mapping[str, float], on: str) -> dict[str, float]:
    """Return the changes as floats; ValueError or TypeError says what is wrong with them."""
    if on not in ("both", "host", "device"):
        raise ValueError(f"on must be 'both', 'host' or 'device', not {on!r}")
    if not isinstance(changes, Mapping):
        raise TypeError(
            "changes must be a mapping of names to factors, as {'attention': 0.5}, not "
            f"{type(changes).__name__}"
        )
    if not changes:
        raise ValueError(
            "changes is empty. Name what should take a different time: {'attention': 0.5}"
        )
    checked = dict[str, float]()
    for name, factor in changes.items():
        if not isinstance(name, str):
            raise TypeError(f"a name must be text, not {name!r}: {{'attention': 0.5}}")
        if isinstance(factor, bool) or not isinstance(factor, (Real, Decimal)):
            raise TypeError(f"the factor of {name!r} must be a number, not {factor!r}")
        try:
            value = float(factor)
        except (OverflowError, ValueError):  # too large, or a signaling NaN
            value = math.inf
        if not 0 <= value <= _LARGEST:
            raise ValueError(
                f"the factor of {name!r} must be from 0 (takes no time) to {_number(_LARGEST)}, "
                f"not {_number(value)}; 1 changes nothing, 2 takes twice the time"
            )
        checked[name] = value
    return checked
