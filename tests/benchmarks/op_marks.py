"""Host cost of marking ops, of decoding and of correlation; no GPU needed.

Times are of this machine; ratios are to a class of the same shape written in Python, and to the
unmarked loop.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import time
import timeit
from typing import Self

import epprof_nb
from epprof_nb import _native
from epprof_nb.recording.cupti.loading import packed_layout
from epprof_nb.recording.statements.instrument_cell import instrument
from epprof_nb.recording.statements.markers import MARKERS
from epprof_nb.recording.statements.statement_registry import Cell
from tests.benchmarks.shared.harness import header, paired, show
from tests.benchmarks.shared.synthetic_records import API_VERSION, kernel_records


class PythonRange:
    """A minimal range written in Python."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass


def nanoseconds(statement: str, names: dict[str, object], number: int = 100_000) -> float:
    """Least time of one execution over several repeats, without the loop's own time."""
    empty = min(timeit.repeat("pass", number=number, repeat=5))
    best = min(timeit.repeat(statement, globals=names, number=number, repeat=9))
    _native.drain_ops(_native.now_ns(), open_too=False)
    return (best - empty) / number * 1e9


def marks() -> None:
    """Print the cost of one mark, recording and not."""
    names = {
        "op": epprof_nb.op,
        "PythonRange": PythonRange,
        "n": _native,
        "kept": epprof_nb.op("x"),
    }
    statements = {
        "push and pop, called from Python": "n.pop(n.push(1, 0))",
        'with op("x"): pass': "with op('x'): pass",
        'with op("x", layer=1): pass': "with op('x', layer=1): pass",
        "with op_made_once: pass": "with kept: pass",
    }
    rows = []
    python = nanoseconds("with PythonRange('x'): pass", names)
    off = {label: nanoseconds(s, names) for label, s in statements.items()}
    _native.set_recording(ops=True, launches=True)
    on = {label: nanoseconds(s, names) for label, s in statements.items()}
    _native.set_recording(ops=False, launches=False)
    rows = [(label, off[label], on[label]) for label in statements]
    print(
        f"{'ns each':36} {'no session':>11} {'recording':>10}   x a Python class ({python:.0f} ns)"
    )
    for label, without, with_ in rows:
        ratios = f"{without / python:.2f}, {with_ / python:.2f}"
        print(f"{label:36} {without:11.0f} {with_:10.0f}   {ratios}")
    print()


LOOP = "for i in range(200_000):\n    x = i + 1\n"
ITERATOR = "for i in iter(range(200_000)):\n    x = i + 1\n"
CALLS = "def f(i):\n    return i + 1\nfor i in range(200_000):\n    f(i)\n"
GENERATORS = """
def g(i):
    yield i
for i in range(200_000):
    for x in g(i): pass
"""
SOURCES = {
    "A pure-Python loop of one short statement": (LOOP, "ns a turn"),
    "The same over an iterator, whose header may do work": (ITERATOR, "ns a turn"),
    "Calls of a function of one short statement": (CALLS, "ns a call"),
    "Uses of a generator that yields once": (GENERATORS, "ns each"),
}


def loop(source: str, unit: str, rounds: int) -> None:
    """Print how much slower code of 200,000 turns runs in a profiled cell."""

    plain = compile(source, "plain", "exec")
    tree = ast.parse(source)
    tree.body = instrument(tree.body, Cell("In[1]", source))
    marked = compile(ast.fix_missing_locations(tree), "marked", "exec")

    def run(code, *, recording: bool):
        def timed() -> float:
            space = dict(MARKERS)
            if recording:
                _native.set_recording(ops=True, launches=False)
            begin = time.perf_counter()
            exec(code, space)
            seconds = time.perf_counter() - begin
            _native.set_recording(ops=False, launches=False)
            _native.drain_ops(_native.now_ns(), open_too=False)
            return seconds

        return timed

    variants = {
        "plain": run(plain, recording=False),
        "marked, no session": run(marked, recording=False),
        "marked, recording": run(marked, recording=True),
    }
    show(paired(variants, rounds), ("plain",), unit, 1e9 / 200_000)


def decoding() -> None:
    """Print the decoder's speed, from raw kernel records of CUPTI 13.0 to columns in Python."""
    layout, count = packed_layout(API_VERSION), 200_000
    raw = kernel_records(count, 1, 1000)
    native, whole = [], []
    for _ in range(25):
        begin = time.perf_counter()
        columns = _native.decode(raw, layout)
        whole.append(time.perf_counter() - begin)
        native.append(columns["decode_ns"] / 1e9)
    print(
        f"decoding {count:,} kernel records of {len(raw) // count} bytes: "
        f"{count / min(native) / 1e6:.0f} M records/s into native columns "
        f"(median {count / statistics.median(native) / 1e6:.0f}), "
        f"{count / min(whole) / 1e6:.0f} M/s into Python's hands\n"
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    header("Marking ops, decoding records")
    marks()
    for title, (source, unit) in SOURCES.items():
        print(f"{title}, 200,000 times:")
        loop(source, unit, args.rounds)
    decoding()


if __name__ == "__main__":
    main()
