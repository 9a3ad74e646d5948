"""Files of a program with the names of standard modules, beside the profiler's own imports."""

import subprocess
import sys

CODE = """
import sys
import statistics, json.decoder
from epprof_nb.util.shadowed_modules import leave_to_program, own_imports
standard = statistics
sys.path.insert(0, sys.argv[1])
leave_to_program(sys.argv[1])
import json, statistics, token
assert (statistics.mine, token.mine) == (1, 1)
assert json.decoder  # the program has a folder of this name without modules
import sys as other_sys, os
assert other_sys is sys
assert not hasattr(os, "mine")
of_program = sys.modules["token"]
with own_imports():
    import statistics, token
    assert statistics is standard
    assert token.tok_name
    assert sys.argv[1] not in sys.path
import token
assert token is of_program
assert sys.path[0] == sys.argv[1]
leave_to_program("/missing")
leave_to_program(os.path.dirname(os.__file__))
import threading
assert threading is sys.modules["threading"]
assert sys.modules["re"]
with own_imports():
    from token import tok_name
print("done")
"""


def test_neither_gets_the_modules_of_the_other(tmp_path):
    for name in ("statistics", "token", "sys", "os", "encodings"):
        (tmp_path / f"{name}.py").write_text("mine = 1\n")
    (tmp_path / "json").mkdir()
    command = [sys.executable, "-c", CODE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("done\n", "")
