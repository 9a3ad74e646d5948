"""Comparison of a run's launches with recorded runs' launches, before the records arrive.

The launch callbacks compute two hashes of a run's launches: one of kernels, grids, blocks and
sizes, and one of the functions only. At the end of a run, they decide whether the next one must be
recorded. The nodes are identified later, from the records.
"""

from __future__ import annotations

MAX_HASHES, MAX_FUNCTION_HASHES = 8, 64
"""Number of hashes kept for runs with inputs of one size, and of any size."""
GIVEN_UP_AFTER = 3
"""Number of mismatches, with few matches between them, after which sizes are assumed to vary."""
_MAX_OWED = 64
_HITS_TO_FORGIVE = 8
"""Number of consecutive matches that reset the count of mismatches. Libraries choose another kernel
about every 16 sizes, and some of these runs are recorded."""


class LaunchComparison:
    """Known launches of the runs of a session.

    Parameters
    ----------
    any_size
        Whether the sizes of inputs vary from run to run. Runs are then identified by their
        functions only, once two recorded runs of different sizes had the same functions; before,
        also by their sizes.

    Attributes
    ----------
    owed
        Number of runs to record next.
    has_given_up
        Whether runs with inputs of one size keep launching work of other sizes.
    mismatched
        Number of runs whose launches were not known when they ended.
    """

    __slots__ = (
        "_any_size", "_hits", "_known", "_last_mismatched", "_mismatched_before_recorded",
        "_misses", "has_given_up", "mismatched", "owed",
    )  # fmt: skip

    def __init__(self, *, any_size: bool) -> None:
        self._any_size = any_size
        self._known: dict[int, int | None] = {}
        """Exact hash of the run that was recorded, by hash; None if runs of any size match."""
        self.owed = self._hits = self._misses = 0
        self.mismatched = self._mismatched_before_recorded = 0
        self._last_mismatched: tuple[tuple[int, int], ...] = ()
        """Hash of the launches of the last mismatched runs, with their number."""
        self.has_given_up = False

    def add_recorded(self, launches: int, launch_hash: int, function_hash: int) -> None:
        """Add a run that was recorded."""
        self.owed = max(self.owed - 1, 0)
        self._mismatched_before_recorded = self.mismatched
        if not launches:
            return
        key = function_hash if self._any_size else launch_hash
        first = self._known.get(key, launch_hash)
        if key not in self._known:
            self._keep(key, launch_hash if self._any_size else None)
            if self._any_size:
                self.owed = max(self.owed, 1)  # for the second size
        elif first is not None and first != launch_hash:
            self._keep(key, None)
            self._misses = max(self._misses - 1, 0)

    def compare(self, launch_hash: int, function_hash: int, mismatched: int) -> bool:
        """Add a run that was not recorded; return whether its launches were known.

        The argument `mismatched` has the value of the attribute when the run began.

        Each consecutive mismatch doubles the number of runs to record next. A session whose
        launches always differ is soon recorded run by run. Runs that launch the same count once if
        they overlap, or until another one was recorded.
        """
        key = function_hash if self._any_size else launch_hash
        known = self._known
        if key in known and known[key] in (None, launch_hash):
            self._hits += 1
            if self._hits >= _HITS_TO_FORGIVE:
                self._misses = 0
            return True
        since = min(mismatched, self._mismatched_before_recorded)
        if any(other == key and number > since for other, number in self._last_mismatched):
            self.owed = max(self.owed, 1)
            return False
        self.mismatched += 1
        missed = (*self._last_mismatched, (key, self.mismatched))
        self._last_mismatched = missed[-MAX_HASHES:]
        self._hits = 0
        self.owed = min(1 << self._misses, _MAX_OWED)
        self._misses = min(self._misses + 1, 16)
        self.has_given_up |= not self._any_size and self._misses >= GIVEN_UP_AFTER
        return False

    def distrust(self, hashes: set[int]) -> bool:
        """Forget launches whose nodes turned out to be unknown; return whether there are any."""
        self.owed = max(self.owed, 1)
        kept = {key: size for key, size in self._known.items() if key not in hashes}
        had_some = len(kept) < len(self._known)
        self._known = kept
        return had_some

    def _keep(self, key: int, size: int | None) -> None:
        # Replace it instead of changing it, because other threads may be reading it.
        kept = [item for item in self._known.items() if item[0] != key]
        most = MAX_FUNCTION_HASHES if self._any_size else MAX_HASHES
        self._known = dict([*kept, (key, size)][-most:])
