"""Options of a session: what to record, and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Detail = Literal["default", "api", "memory", "overhead", "all"]
DETAILS: tuple[Detail, ...] = ("default", "api", "memory", "overhead", "all")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a session.

    Parameters
    ----------
    detail
        ``"default"`` records kernels, copies, memsets, synchronizations, and the driver calls
        that cause them. ``"api"`` adds all runtime and driver calls, ``"memory"`` allocations and
        releases, ``"overhead"`` CUPTI's own overhead. ``"all"`` records everything. Separate
        several values with commas.
    max_records
        Maximum number of activities; further ones are dropped and counted.
    time_limit_s
        Seconds after which recording stops while the code continues; None for no limit.
    """

    detail: str = "default"
    max_records: int = 5_000_000
    time_limit_s: float | None = None

    def __post_init__(self) -> None:
        unknown = sorted(self.details - set(DETAILS))
        if unknown:
            raise ValueError(
                f"unknown detail {', '.join(map(repr, unknown))}; "
                f"choose one or more of {', '.join(DETAILS)}, separated by commas"
            )
        if self.max_records < 1:
            raise ValueError(f"max_records must be at least 1, not {self.max_records}")
        if self.time_limit_s is not None and not self.time_limit_s > 0:
            raise ValueError(f"time_limit_s must be more than 0, not {self.time_limit_s}")

    @property
    def details(self) -> frozenset[str]:
        """The values in `detail`."""
        return frozenset(part.strip() for part in self.detail.split(",") if part.strip())

    def records(self, part: str) -> bool:
        """Whether `part` (``"api"``, ``"memory"`` or ``"overhead"``) is recorded."""
        return part in self.details or "all" in self.details
