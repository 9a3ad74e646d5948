"""Findings of slow programs against their cures, measured without the profiler.

::

    python -m tests.benchmarks.slow_programs [--rounds 12] [--only WORDS] [--keep FOLDER]
    python -m tests.benchmarks.slow_programs --again FOLDER
    python -m tests.benchmarks.slow_programs --programs FILE --texts

Each program of `tests.benchmarks.shared.slow_cells` runs in an IPython shell, slow and cured in
turns, as a cell and as a function of an earlier cell. The difference of the unprofiled medians is
the true gain. Then each runs once under ``%%gpuprofile``. `EXPECTED` says which kinds, lines and
words of a remedy name the cause that the cure removes. ``--keep`` saves the profiles and their
times, and ``--again`` judges saved profiles by the current findings. ``--programs`` takes them from
a file like `slow_cells`; a person judges those, as `EXPECTED` does not have them. Needs torch and a
CUDA device.
"""

from __future__ import annotations

import argparse
import json
import re
import runpy
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

import epprof_nb
from tests.benchmarks.shared.harness import header
from tests.benchmarks.shared.slow_cells import PROGRAMS, SETUP, as_function

if TYPE_CHECKING:
    from epprof_nb.profiles import Profile

FORMS = ("cell", "function")


class Expected(NamedTuple):
    """A cause as a finding must name it: a line of the program, and words of the remedy."""

    lines: tuple[int, ...]
    words: str


# Lines count from 1 in the cell. A finding without one line of code has no place to judge.
EXPECTED = {
    "loss read each step": Expected((6,), r"later|less often|asynchron"),
    "optimizer tensor by tensor": Expected((3,), r"foreach|fused"),
    "host work between batches": Expected((2,), r"thread of its own|another thread|worker"),
    "copies of pageable memory": Expected((2,), r"pin"),
    "many tiny kernels": Expected((1, 4), r"graph|compile|fewer|fuse"),
    "a scalar checked each time": Expected((3,), r"device|less often|later"),
    "cache emptied each step": Expected((3,), r"empty_cache|allocat|cache"),
    "to the CPU and back": Expected((3,), r"on the (device|GPU)|pin"),
    "a mask that waits": Expected((2,), r"where|mask|size|later|device"),
    "the same table copied each step": Expected((2,), r"once|before the loop|keep"),
    "double precision by accident": Expected((2,), r"float32|single|precision"),
    "memory registered each step": Expected((2, 6), r"once|before the loop|reuse|keep"),
    "garbage collection each step": Expected((2,), r"gc\.|collect"),
    "a synchronization each layer": Expected((5,), r"remove|drop|later|less often"),
}


class Run(NamedTuple):
    """One form of one program: unprofiled times in seconds, and profiles of both versions."""

    name: str
    form: str
    slow: list[float]
    cured: list[float]
    slow_profile: Profile
    cured_profile: Profile

    @property
    def gain_ns(self) -> float:
        return (statistics.median(self.slow) - statistics.median(self.cured)) * 1e9


class Verdict(NamedTuple):
    """The findings of one run, judged."""

    rank: int | None
    in_interval: bool
    narrow: bool
    close: bool
    cured_share: float


def seconds(shell: Any, code: str) -> float:
    """Time of a cell that is already compiled, with the device idle before and after."""
    compiled = compile(code, "<unprofiled>", "exec")
    shell.user_ns["torch"].cuda.synchronize()
    begin = time.perf_counter()
    exec(compiled, shell.user_ns)
    return time.perf_counter() - begin


def profiled(shell: Any, code: str) -> Profile:
    shell.user_ns["torch"].cuda.synchronize()
    shell.run_cell(f"%%gpuprofile prof\n{code}", store_history=True).raise_error()
    return shell.user_ns["prof"]


def measured(rounds: int, only: str, setup: str, programs: list[tuple[str, ...]]) -> list[Run]:
    """Run every program in both forms."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_cell("%load_ext epprof_nb").raise_error()
    shell.run_cell(setup, store_history=True).raise_error()
    runs = []
    for name, slow, cured, _cause in programs:
        if only not in name:
            continue
        for form in FORMS:
            codes = [slow, cured]
            if form == "function":
                for code, function in zip(codes, ("slow", "cured"), strict=True):
                    shell.run_cell(as_function(code, function), store_history=True).raise_error()
                codes = ["slow()", "cured()"]
            times: list[list[float]] = [[], []]
            for round_ in range(rounds + 2):
                for i in (0, 1) if round_ % 2 else (1, 0):
                    took = seconds(shell, codes[i])
                    if round_ >= 2:  # the first two warm up
                        times[i].append(took)
            profiles = []
            for code in codes:
                profiled(shell, code)
                profiles.append(profiled(shell, code))
            runs.append(Run(name, form, *times, *profiles))
    return runs


def keep(runs: list[Run], folder: Path) -> None:
    """Save profiles and times."""
    folder.mkdir(parents=True, exist_ok=True)
    index = []
    for i, run in enumerate(runs):
        files = [f"{i:02d}-{version}.epprof" for version in ("slow", "cured")]
        run.slow_profile.save(folder / files[0])
        run.cured_profile.save(folder / files[1])
        index.append([run.name, run.form, run.slow, run.cured, *files])
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")


def kept(folder: Path, only: str) -> list[Run]:
    """Load what `keep` saved."""
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    return [
        Run(name, form, slow, cured, *(epprof_nb.load(folder / file) for file in files))
        for name, form, slow, cured, *files in index
        if only in name
    ]


def names_the_cause(finding: Any, run: Run) -> bool:
    """Whether the place and the remedy of a finding are those of the cure."""
    if run.name not in EXPECTED:
        return False
    expected = EXPECTED[run.name]
    # A cell has its magic above, and a function its head.
    places = {line + 1 for line in expected.lines}
    if run.name == "many tiny kernels":
        places.add(14)  # `tiny` of the setup
    texts = f"{finding.text} {finding.remedy}"
    named = {int(n) for n in re.findall(r"[Ll]ines? (\d+)", finding.text)}
    if not pd.isna(finding.line):
        named.add(int(finding.line))
    return bool(named & (places | set(expected.lines))) and bool(re.search(expected.words, texts))


def judged(run: Run) -> Verdict:
    findings = run.slow_profile.insights()
    rank = next(
        (i for i, f in enumerate(findings.itertuples(), 1) if names_the_cause(f, run)), None
    )
    cured = run.cured_profile.insights()
    wall = max(run.cured_profile.info["wall_ns"], 1)
    share = float(cured["gain_ns"].max()) / wall if len(cured) else 0.0
    if rank is None:
        return Verdict(None, False, False, False, share)
    found = findings.iloc[rank - 1]
    low, gain, high = (float(found[c]) for c in ("gain_low_ns", "gain_ns", "gain_high_ns"))
    true = run.gain_ns
    return Verdict(
        rank,
        low <= true <= high,
        high <= 4 * low,
        abs(gain - true) <= 0.3 * true,
        share,
    )


def milliseconds(ns: float) -> str:
    return f"{ns / 1e6:.1f}"


def report(runs: list[Run], texts: bool) -> None:
    """Print a row per program and form, and the counts."""
    verdicts = [judged(run) for run in runs]
    print(f"{'program':34}{'form':10}{'slow':>7}{'cured':>7}{'gain':>7}  rank  found (low - high)")
    for run, verdict in zip(runs, verdicts, strict=True):
        findings = run.slow_profile.insights()
        found = "-"
        if verdict.rank:
            row = findings.iloc[verdict.rank - 1]
            found = (
                f"{row['kind']}: {milliseconds(row['gain_ns'])}"
                f" ({milliseconds(row['gain_low_ns'])} - {milliseconds(row['gain_high_ns'])})"
            )
        print(
            f"{run.name:34}{run.form:10}{statistics.median(run.slow) * 1e3:7.1f}"
            f"{statistics.median(run.cured) * 1e3:7.1f}{milliseconds(run.gain_ns):>7}"
            f"  {verdict.rank or '-'!s:>4}  {found}, cured {verdict.cured_share:.0%}"
        )
        if texts:
            for which, profile in (("slow", run.slow_profile), ("cured", run.cured_profile)):
                for row in profile.insights().itertuples():
                    print(
                        f"    {which} {row.rank}. {row.kind} line {row.line}"
                        f" {milliseconds(row.gain_ns)} ({milliseconds(row.gain_low_ns)} -"
                        f" {milliseconds(row.gain_high_ns)}): {row.text} {row.remedy}"
                    )
    for form in FORMS:
        some = [v for r, v in zip(runs, verdicts, strict=True) if r.form == form]
        print(
            f"{form}: of {len(some)}, named first or second"
            f" {sum(v.rank is not None and v.rank <= 2 for v in some)},"
            f" true gain in the interval {sum(v.in_interval for v in some)},"
            f" high at most 4 low {sum(v.narrow for v in some)},"
            f" within 30 % {sum(v.close for v in some)},"
            f" cured without a finding above 5 % {sum(v.cured_share <= 0.05 for v in some)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Findings of slow programs against their cures.")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", default="", help="words of a program's name")
    parser.add_argument("--keep", type=Path, help="folder for the profiles")
    parser.add_argument("--again", type=Path, help="folder of kept profiles to judge again")
    parser.add_argument("--programs", type=Path, help="a file with SETUP and PROGRAMS")
    parser.add_argument("--texts", action="store_true", help="print every finding")
    options = parser.parse_args()
    header("findings of slow programs")
    if options.again:
        runs = kept(options.again, options.only)
    else:
        setup, programs = SETUP, PROGRAMS
        if options.programs:
            names = runpy.run_path(str(options.programs))
            setup, programs = names["SETUP"], names["PROGRAMS"]
        runs = measured(options.rounds, options.only, setup, programs)
        if options.keep:
            keep(runs, options.keep)
    report(runs, options.texts)


if __name__ == "__main__":
    main()
