"""Duration of the breakdowns of a large profile: ``python -m tests.benchmarks.breakdowns [N]``.

Each is computed three times for a new profile, which has no caches, and three times for the last of
these profiles. The shortest time counts.
"""

from __future__ import annotations

import resource
import sys
import time
from typing import TYPE_CHECKING

from epprof_nb.analysis.breakdowns.line_totals import line_totals
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile
from epprof_nb.views.queries.icicle import icicle
from epprof_nb.views.view_model import ViewModel
from tests.benchmarks.shared.harness import header

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 3
BREAKDOWNS = ("op", "kernel", "line", "stream", "path", "node", "op_type")


def least(act: Callable[[], object]) -> float:
    """Seconds of the fastest of three rounds."""
    seconds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def main() -> None:
    """Print one row per breakdown."""
    activities = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    header(f"Breakdowns of {activities:,} activities")
    profile = synthetic_profile(activities=activities)
    made = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    for name in (*(f"by_{of}" for of in BREAKDOWNS), "joined"):
        new = Profile(profile.tables, profile.info, profile.sources)

        def first(name: str = name) -> object:
            nonlocal new
            new = Profile(profile.tables, profile.info, profile.sources)
            return getattr(new, name)()

        print(f"  {name:11} {least(first):6.2f} s, again {least(getattr(new, name)):6.2f} s")
    view_model = ViewModel(profile)
    _ = view_model.index.activity_op, view_model.index.kinds
    print(f"  {'lines':11} {least(lambda: line_totals(view_model.index)):6.2f} s")
    print(f"  {'tree':11} {least(lambda: icicle(view_model)):6.2f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\n  peak memory {peak:.1f} GB, of which creating the profile took {made:.1f} GB")


if __name__ == "__main__":
    main()
