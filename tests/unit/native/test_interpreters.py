"""Interpreters that the native core refuses."""

from __future__ import annotations

import subprocess
import sys

from epprof_nb import _native

CODE = """
import sys
try:
    import _interpreters
    made = _interpreters.create("legacy")
except ImportError:  # before Python 3.13
    import _xxsubinterpreters as _interpreters
    made = _interpreters.create(isolated=False)
load = '''
import importlib.util
spec = importlib.util.spec_from_file_location("epprof_nb._native", {path!r})
module = importlib.util.module_from_spec(spec)
try:
    spec.loader.exec_module(module)
except ImportError as error:
    print(error, flush=True)
'''.format(path=sys.argv[1])
failed = _interpreters.run_string(made, load)
assert failed is None, failed
"""


def test_a_sub_interpreter_is_told_where_to_import():
    done = subprocess.run(
        [sys.executable, "-c", CODE, _native.__file__], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "works in Python's main interpreter only" in done.stdout
