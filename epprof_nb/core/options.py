"""What to record, and how much of it: the options of a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Detail = Literal["default", "api", "memory", "overhead", "all"]
DETAILS: tuple[Detail, ...] = ("default", "api", "memory", "overhead", "all")


@dataclass(frozen=True, slots=True)
class Options:
    """What a session records and where it stops.

    Parameters
    ----------
    detail
        ``"default"``: kernels, copies, sets, waits, and the driver calls that launch, copy, set
        or synchronise. ``"api"`` adds every runtime and driver call, ``"memory"`` allocations and
        releases, ``"overhead"`` CUPTI's own overhead; ``"all"`` is all of them. Several may be
        joined by commas.
    max_records
        Activities kept at most; those beyond it are counted as lost.
    time_limit_s
        Seconds after which recording stops (the code goes on); None for no limit.
    """

    detail: str = "default"
    max_records: int = 5_000_000
    time_limit_s: float | None = None

    def __post_init__(self) -> None:
        unknown = sorted(self.details - set(DETAILS))
        if unknown:
            raise ValueError(
                f"unknown detail {', '.join(map(repr, unknown))}; "
                f"choose from {', '.join(DETAILS)}, several joined by commas"
            )
        if self.max_records < 1:
            raise ValueError(f"max_records must be at least 1, not {self.max_records}")
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise ValueError(f"time_limit_s must be more than 0, not {self.time_limit_s}")

    @property
    def details(self) -> frozenset[str]:
        """The parts of `detail`."""
        return frozenset(part.strip() for part in self.detail.split(",") if part.strip())

    def records(self, part: str) -> bool:
        """Whether `part` (``"api"``, ``"memory"``, ``"overhead"``) is to be recorded."""
        return part in self.details or "all" in self.details
