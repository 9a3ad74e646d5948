"""Verdicts of `epprof_nb.compare` under changing load: on the same code, and on a planted change.

    python -m tests.benchmarks.compare_load --pairs 200 --planted 100 [--repeats 20] [--no-load]

Processes, one per core, compute or copy memory in random patterns. For false verdicts, pairs of
recordings of the same code are made one after the other, at random distances. For the power, code
that takes 10 % longer is recorded in turn with the old one, as with ``--interleave``.
"""

from __future__ import annotations

import argparse
import os
import time
import uuid
from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import epprof_nb
from epprof_nb.profiles import Profile
from epprof_nb.recording.session import session
from epprof_nb.recording.session.interleaving import split
from tests.benchmarks.shared.changing_load import ChangingLoad
from tests.benchmarks.shared.compare_work import on_host
from tests.benchmarks.shared.harness import header

if TYPE_CHECKING:
    from collections.abc import Callable

Work: TypeAlias = "Callable[[float], None]"
"""Runs the code, longer by a share."""

NAMES = ("host device", "memory", "Python", "BLAS")
CALLED = ("faster", "slower")
_LONGEST_PAUSE_S = 2.0


def works() -> dict[str, Work]:
    """Return code that is bound by the host device, memory, BLAS and Python: 1 to 20 ms each."""
    steps = on_host(steps=160, all_ops=True)
    large, target, matrix = np.ones(1 << 19), np.empty(1 << 19), np.ones((200, 200))

    def memory(longer: float) -> None:
        for _ in range(round(10 * (1 + longer))):
            np.add(large, 1, out=target)

    def products(longer: float) -> None:
        for _ in range(round(10 * (1 + longer))):
            matrix @ matrix

    def python(longer: float) -> None:
        total = 0
        for i in range(round(50_000 * (1 + longer))):
            total += i * i

    return dict(zip(NAMES, (steps, memory, python, products), strict=True))


def record(work: Work, repeats: int) -> Profile:
    """Profile repeats of the code."""
    work(0.0)
    running = session.start()
    for _ in range(repeats):
        running.mark_repeat()
        work(0.0)
    return Profile.from_data(running.stop())


def in_turn(work: Work, repeats: int, longer: float) -> list[Profile]:
    """Profile repeats of both sides, alternately: old new new old."""
    work(0.0)
    running = session.start()
    sides = [0, 1, 1, 0] * (repeats // 2)
    for number, side in enumerate(sides):
        if number:
            running.end_repeat()
        running.begin_repeat()
        work(longer * side)
    running.end_repeat()
    names = ["old", "new"]
    parts = split(running.stop(), sides, names, names, recording=uuid.uuid4().hex)
    return [Profile.from_data(side) for side in parts]


def same_code(chosen: dict[str, Work], pairs: int, repeats: int, rng: np.random.Generator) -> None:
    """Compare pairs of recordings of the same code, and print how many are called different."""
    total: Counter[str] = Counter()
    for name, work in chosen.items():
        verdicts: Counter[str] = Counter()
        ops = 0
        for _ in range(pairs // len(chosen)):
            old = record(work, repeats)
            time.sleep(_LONGEST_PAUSE_S * rng.random() ** 2)
            result = epprof_nb.compare(old, record(work, repeats))
            verdicts[result.verdict] += 1
            ops += bool(set(result.ops["verdict"]) & set(CALLED))
        total += verdicts
        print(f"  {name}: {dict(verdicts)}; an op is called in {ops}", flush=True)
    called = sum(total[verdict] for verdict in CALLED)
    print(f"same code: {called} of {total.total()} pairs called different; {dict(total)}\n")


def planted(chosen: dict[str, Work], pairs: int, repeats: int, longer: float) -> None:
    """Compare old code with slower code, recorded in turn, and print how often it is found."""
    found = 0
    for name, work in chosen.items():
        verdicts: Counter[str] = Counter()
        changes = []
        for _ in range(pairs // len(chosen)):
            result = epprof_nb.compare(*([side] for side in in_turn(work, repeats, longer)))
            verdicts[result.verdict] += 1
            changes.append(result.change)
        found += verdicts["slower"]
        low, median, high = np.quantile(changes, [0.05, 0.5, 0.95])
        print(
            f"  {name}: {dict(verdicts)}; change {median:+.1%}, 90 % between {low:+.1%} and "
            f"{high:+.1%}",
            flush=True,
        )
    made = pairs // len(chosen) * len(chosen)
    print(f"{longer:.0%} slower, recorded in turn: found in {found} of {made} pairs\n")


def main() -> None:
    """Run both parts under load."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--planted", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--longer", type=float, default=0.1)
    parser.add_argument("--works", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--no-load", action="store_true", help="make no load")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    header("Verdicts under changing load")
    with nullcontext() if options.no_load else ChangingLoad(options.seed):
        begin = time.perf_counter()
        chosen = {name: work for name, work in works().items() if name in options.works}
        if options.pairs:
            same_code(chosen, options.pairs, options.repeats, np.random.default_rng(options.seed))
        if options.planted:
            planted(chosen, options.planted, options.repeats, options.longer)
        print(
            f"took {time.perf_counter() - begin:.0f} s; load average {os.getloadavg()[0]:.1f} on "
            f"{os.cpu_count()} cores"
        )


if __name__ == "__main__":
    main()
