"""Python's own tests have the same outcome in profiled cells as in plain ones.

`python_tests` runs modules of Python's ``test`` package twice: as one cell, whose functions the
tests are, and with the body of each test as a cell. An outcome includes the message of an error and
the lines of its traceback. Tests that fail in a cell (no ``super()``, say) fail alike.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULES = [
    "test_asyncgen", "test_augassign", "test_class", "test_contextlib", "test_contextlib_async",
    "test_coroutines", "test_decorators", "test_dictcomps", "test_except_star",
    "test_exception_group", "test_exceptions", "test_extcall", "test_generator_stop",
    "test_generators", "test_genexps", "test_global", "test_grammar", "test_iter",
    "test_keywordonlyarg", "test_listcomps", "test_named_expressions", "test_patma",
    "test_positional_only_arg", "test_property", "test_raise", "test_scope", "test_super",
    "test_syntax", "test_type_params", "test_unpack", "test_unpack_ex", "test_with",
    "test_yield_from",
]  # fmt: skip
PROGRAM = Path(__file__).parent / "python_tests.py"
TIMEOUT_S = 240

LINE_TABLE = (
    "replaces the line table of a function by one that is too short with markers: what Python "
    "reads behind its end decides"
)
TRACED = "sys.settrace reports the exit of the with statement around the body of a function"
CELL_FRAME = (
    "compares the frames of two statements of a cell: IPython runs each in a frame of its own, and "
    "a profiled cell has one frame"
)
ALL = ("3.11", "3.12", "3.13")
BOTH = ("functions", "cells")
# Test: (reason, Python versions, ways to run it).
DIFFERENCES = {
    "test_exceptions.PEP626Tests.test_missing_lineno_shows_as_none": (LINE_TABLE, ("3.11",), BOTH),
    "test_patma.TestTracing.test_default_capture": (TRACED, ALL, BOTH),
    "test_patma.TestTracing.test_default_wildcard": (TRACED, ALL, BOTH),
    "test_patma.TestTracing.test_no_default": (TRACED, ALL, BOTH),
    "test_patma.TestTracing.test_only_default_capture": (TRACED, ALL, BOTH),
    "test_patma.TestTracing.test_only_default_wildcard": (TRACED, ALL, BOTH),
    "test_patma.TestTracing.test_unreachable_code": (TRACED, ALL, BOTH),
    "test_raise.TestTracebackType.test_attrs": (CELL_FRAME, ALL, ("cells",)),
}
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def start(mode, unit):
    names = [name for name in MODULES if importlib.util.find_spec(f"test.{name}")]
    return subprocess.Popen(
        [sys.executable, PROGRAM, mode, unit, *names],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )  # fmt: skip


def outcomes(process):
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err[-3000:]
    return json.loads(out.splitlines()[-1])


@pytest.mark.skipif(
    importlib.util.find_spec("test.test_grammar") is None,
    reason="this Python has no test package (python3-test, libpython3-testsuite)",
)
@pytest.mark.parametrize("unit", BOTH)
def test_outcomes_are_those_of_plain_python(unit):
    processes = [start(mode, unit) for mode in ("plain", "profiled")]
    try:
        plain, profiled = map(outcomes, processes)
    finally:
        for process in processes:
            process.kill()
    assert plain.keys() == profiled.keys()
    passed = sum(outcome == "ok" for outcome in plain.values())
    assert passed > 0.8 * len(plain) > 1000
    differing = {name for name in plain if plain[name] != profiled[name]}
    unexplained = {n: (plain[n], profiled[n]) for n in differing - DIFFERENCES.keys()}
    assert not unexplained
    expected = {
        name
        for name, (reason, versions, units) in DIFFERENCES.items()
        if VERSION in versions and unit in units and reason != LINE_TABLE
    }
    assert expected <= differing, "remove what no longer differs from the table"
