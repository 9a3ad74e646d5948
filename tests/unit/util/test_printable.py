"""Text of displays on a standard output that lacks characters."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from epprof_nb.util.printable import printable

SHOW = """
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display
from epprof_nb.testing import synthetic_profile
from epprof_nb import compare
InteractiveShell.instance()
prof = synthetic_profile(activities=200)
display(prof)
display(compare(prof, prof))
prof.timeline().widget()
"""


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_views_are_displayed_outside_of_notebooks_whatever_the_encoding(encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment, capture_output=True, check=True
    )
    text = done.stdout.decode(encoding)
    assert text.count("192 kernels") == 2
    assert ("917 us" if encoding == "ascii" else "917 µs") in text


def test_unknown_characters_are_replaced_and_text_that_fits_is_kept(monkeypatch, tmp_path):
    with (tmp_path / "out").open("w", encoding="latin-1") as file:
        monkeypatch.setattr("sys.stdout", file)
        assert printable("12 µs · naïve") == "12 µs · naïve"
        assert printable("12 µs → 語") == "12 us -> ?"
    monkeypatch.setattr("sys.stdout", None)
    assert printable("語") == "語"
