"""Time, size and memory of Chrome traces, against a writer that calls `json.dumps` per event."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb.files.exporters.activity_tracks import ActivityTracks
from epprof_nb.files.exporters.chrome_trace import to_chrome
from epprof_nb.testing import synthetic_profile
from tests.benchmarks.shared.harness import header, paired, show
from tests.helpers.chrome_events import slices_and_arrows

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.data.profile_data import ProfileData


def one_by_one(profile: ProfileData, path: Path) -> None:
    """Write the events with `json.dumps`, as plain JSON."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [{}')
        for event in slices_and_arrows(profile, ActivityTracks(profile)):
            file.write(",\n" + json.dumps(event))
        file.write("\n]}\n")


def status(field: str) -> float:
    """Return a size in /proc/self/status, in MB."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.split(f"{field}:")[1].split()[0]) / 1000


def main() -> None:
    """Print times as ratios, and the sizes of the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peak", action="store_true", help="write one trace and print the memory")
    args = parser.parse_args()
    profile = synthetic_profile(args.launches, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        if args.peak:
            Path("/proc/self/clear_refs").write_text("5")  # reset the peak
            before = status("VmRSS")
            to_chrome(profile, Path(folder) / "trace.json.gz")
            print(status("VmHWM") - before)
            return
        header(f"Chrome trace of {args.launches:,} launches")

        def timed(write: Callable[[ProfileData, Path], None], name: str) -> Callable[[], float]:
            def run() -> float:
                start = time.perf_counter()
                write(profile, Path(folder) / name)
                return time.perf_counter() - start

            return run

        variants = {
            "json.dumps per event": timed(one_by_one, "peer.json"),
            "to_chrome, .json": timed(to_chrome, "trace.json"),
            "to_chrome, .json.gz": timed(to_chrome, "trace.json.gz"),
        }
        results = paired(variants, args.rounds)
        show(results, ("json.dumps per event", "to_chrome, .json.gz"), "s", 1)
        sizes = {path.name: path.stat().st_size for path in Path(folder).iterdir()}
        for name, size in sizes.items():
            print(f"{name:16} {size / 1e6:9.1f} MB  {size / sizes['trace.json']:6.3f} x trace.json")
    command = [sys.executable, "-m", "tests.benchmarks.chrome_trace", "--peak"]
    for launches in (args.launches // 4, args.launches):
        peak = subprocess.run(
            [*command, "--launches", str(launches)], capture_output=True, text=True, check=True
        ).stdout
        print(f"memory above the profile's, {launches:,} launches: {float(peak):.0f} MB")


if __name__ == "__main__":
    main()
