"""Duration and memory of `prof.insights()`: ``python -m tests.benchmarks.findings [SIZE...]``.

Each size runs in a separate process, the sizes in turns. Times are CPU times, in a profile of a
training loop whose index and tables are new. Memory is the peak above the memory of the profile.
The critical path is measured separately, too, and then `prof.summary()`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.shared.harness import header


def _status(field: str) -> int:
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.split(f"{field}:")[1].split()[0]) * 1024


def measure(activities: int) -> dict[str, float]:
    """Measure one size in this process."""
    import pandas as pd  # noqa: F401 - imported before the measurement

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.by_op import critical_path_op_table
    from epprof_nb.analysis.critical_path.chain import CriticalPath
    from epprof_nb.testing import synthetic_profile

    profile = synthetic_profile(activities=activities)
    synthetic_profile(activities=1_000).insights()
    found: dict[str, float] = {"tables": sum(t.nbytes for t in profile.tables.values())}

    def timed(name: str, act: object) -> None:
        begin, wall = time.process_time(), time.perf_counter()
        act()  # type: ignore[operator]
        found[name] = time.process_time() - begin
        found[f"{name}_wall"] = time.perf_counter() - wall

    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # reset the peak
    before = _status("VmRSS")
    timed("insights", profile.insights)
    found["bytes"] = _status("VmHWM") - before
    index = ProfileIndex(profile)
    _ = index.activity_op, index.call_op, index.is_device_work, index.calls, index.kinds
    timed("path", lambda: index.cached(CriticalPath, "launch").step)
    timed("savings", lambda: critical_path_op_table(index))
    timed("summary", profile.summary)
    return found


def main() -> None:
    """Print one row per size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", type=float, nargs="*", default=[1e4, 1e5, 1e6, 1e7])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", type=int, help="measure this size and print JSON")
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(measure(args.one)))
        return
    header("Insights; s of CPU time (medians), memory over that of the tables")
    sizes = [int(size) for size in args.sizes]
    runs: dict[int, list[dict[str, float]]] = {size: [] for size in sizes}
    for number in range(args.rounds):
        for size in sizes if number % 2 == 0 else reversed(sizes):
            command = [sys.executable, "-m", __spec__.name, "--one", str(size)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            runs[size].append(json.loads(done.stdout.splitlines()[-1]))
    names = ("insights", "insights_wall", "path", "savings", "summary")
    print(f"{'activities':>12} " + "".join(f"{name:>15}" for name in names)
          + f"{'us/activity':>13}{'memory':>8}")  # fmt: skip
    for size, found in runs.items():
        median = {name: statistics.median(run[name] for run in found) for name in names}
        memory = max(run["bytes"] / run["tables"] for run in found)
        print(f"{size:12,} " + "".join(f"{median[name]:15.2f}" for name in names)
              + f"{median['insights'] / size * 1e6:13.2f}{memory:8.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
