"""Profiles are saved and loaded without pandas, whose import takes longer than either."""

from __future__ import annotations

import subprocess
import sys

SAVE_AND_LOAD = """
import sys, epprof_nb
with epprof_nb.profile() as prof, epprof_nb.op("work"):
    pass
prof.save(sys.argv[1])
assert epprof_nb.load(sys.argv[1]).info["recorded"] == prof.info["recorded"]
print("pandas" in sys.modules)
"""


def test_a_profile_is_saved_and_loaded_without_pandas(tmp_path):
    command = [sys.executable, "-c", SAVE_AND_LOAD, str(tmp_path / "saved.epprof")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
