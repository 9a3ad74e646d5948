"""Measurements of an experiment, as the info of a profile keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.experiments.ops_to_delay import SIDES, Factor
from epprof_nb.analysis.experiments.slopes import slopes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.analysis.experiments.slopes import Slope


@dataclass(slots=True)
class Round:
    """Repeats in which the same factors were delayed.

    Attributes
    ----------
    factors
        The factors.
    levels, delay_ns
        For each repeat, the level of each factor (1 or -1), and the length that its delays had.
    wall_ns, waited_ns
        Wall time of each repeat, and for how long threads waited for a core in it.
    """

    factors: list[Factor]
    levels: list[list[int]] = field(default_factory=list)
    delay_ns: list[list[int]] = field(default_factory=list)
    wall_ns: list[int] = field(default_factory=list)
    waited_ns: list[int] = field(default_factory=list)

    def slopes(self) -> list[Slope]:
        """Return the slope of each factor."""
        shape = (len(self.wall_ns), len(self.factors))
        return slopes(
            np.array(self.levels, np.int8).reshape(shape),
            np.array(self.delay_ns, np.int64).reshape(shape),
            np.array(self.wall_ns, np.int64),
            np.array(self.waited_ns, np.int64),
        )


@dataclass(slots=True)
class Measured:
    """An experiment: its repeats, and why it ended.

    Attributes
    ----------
    asked
        Number of repeats that the user wanted.
    base_ns
        Wall times of the repeats with delays of length zero, before the others.
    rounds
        Rounds with delays.
    uncovered
        Name of an op to why its device work was not delayed.
    refused
        Why nothing, or no more, was measured; empty if all was.
    plan
        A sentence on how exact the repeats were expected to be; empty if it was not known yet.
    steps
        Number of steps of a script in a repeat; 1 for cells.
    runs
        How often the code of the cell ran in all; 0 if that is not known.
    """

    asked: int = 0
    base_ns: list[int] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    uncovered: dict[str, str] = field(default_factory=dict)
    refused: str = ""
    plan: str = ""
    steps: int = 1
    runs: int = 0

    @property
    def repeats(self) -> int:
        """Number of repeats with delays."""
        return sum(len(part.wall_ns) for part in self.rounds)

    def recorded(self, info: Mapping[str, Any]) -> int:
        """Return how many repeats a profile with this info has, which may have several steps."""
        return max(len(info.get("repeats") or ()) // self.steps, 1)

    def as_info(self) -> dict[str, Any]:
        """Return the entry ``experiment`` of a profile's info."""
        return {
            "asked": self.asked,
            "base_ns": self.base_ns,
            "rounds": [
                {
                    "factors": [[factor.op, factor.side] for factor in part.factors],
                    "levels": part.levels,
                    "delay_ns": part.delay_ns,
                    "wall_ns": part.wall_ns,
                    "waited_ns": part.waited_ns,
                }
                for part in self.rounds
            ],
            "uncovered": self.uncovered,
            "refused": self.refused,
            "plan": self.plan,
            "steps": self.steps,
            "runs": self.runs,
        }

    @classmethod
    def from_info(cls, info: Mapping[str, Any]) -> Measured | None:
        """Return the experiment of a profile; None if it has none."""
        entry = info.get("experiment")
        if entry is None:
            return None
        rounds = [_round_of(part) for part in entry.get("rounds", ())]
        return cls(
            entry.get("asked", 0),
            entry.get("base_ns", []),
            [part for part in rounds if part is not None],
            entry.get("uncovered", {}),
            entry.get("refused", ""),
            entry.get("plan", ""),
            max(entry.get("steps", 1), 1),
            entry.get("runs", 0),
        )


def _round_of(entry: Mapping[str, Any]) -> Round | None:
    """Return a round; None if its parts do not fit each other, as in a damaged file."""
    factors = entry.get("factors", [])
    levels, delays, walls = (entry.get(key, []) for key in ("levels", "delay_ns", "wall_ns"))
    waits = entry.get("waited_ns", [0] * len(walls))
    fits = all(len(factor) == 2 and factor[1] in SIDES for factor in factors)
    fits &= len(levels) == len(delays) == len(walls) == len(waits)
    fits &= all(len(row) == len(factors) for row in (*levels, *delays))
    fits &= all(level in (-1, 1) for row in levels for level in row)
    if not fits:
        return None
    return Round([Factor(*factor) for factor in factors], levels, delays, walls, waits)
