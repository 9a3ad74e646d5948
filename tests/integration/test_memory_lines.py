"""Memory of functions of other cells and of files has the line that allocates, and its caller."""

from __future__ import annotations

import sys

from epprof_nb.views.renderers.text import as_text
from epprof_nb.views.view_model import ViewModel

SOURCE = (
    "from epprof_nb import host\n\n"
    "class Cache:\n"
    "    kept = []\n"
    "    def add(self, n):\n"
    "        self.kept.append(\n            host.empty(n))\n"
)
CELL = "def load(n):\n    host.empty(n)\n    kept.append(host.empty(2 * n))\n"


def test_memory_of_functions_in_other_cells_and_files(run, shell, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "cache_of_the_test.py"
    file.write_text(SOURCE)
    try:
        run("from cache_of_the_test import Cache\nfrom epprof_nb import host\nkept = []")
        run(CELL)
        run(
            "%%gpuprofile prof --detail memory\n"
            "for i in range(3):\n    load(1000)\n    Cache().add(5000)\nload(10)\n"
        )
    finally:
        sys.modules.pop("cache_of_the_test", None)
    prof = shell.user_ns["prof"]
    columns = ["cell", "line", "function", "caller_cell", "caller_line"]
    lines = prof.by_line(memory=True)
    lines = lines[lines["allocated_bytes"] > 0].sort_values("allocated_bytes", ascending=False)
    assert lines[[*columns, "allocated_bytes", "freed_bytes", "blocks"]].to_numpy().tolist() == [
        [str(file), 6, "Cache.add", "In[3]", 4, 60_000, 0, 3],
        ["In[2]", 3, "load", "In[3]", 3, 24_000, 0, 3],
        ["In[2]", 2, "load", "In[3]", 3, 12_000, 12_000, 3],
        ["In[2]", 3, "load", "In[3]", 5, 80, 0, 1],
        ["In[2]", 2, "load", "In[3]", 5, 40, 40, 1],
    ]
    assert lines["name"].tolist()[:2] == ["self.kept.append(", "kept.append(host.empty(2 * n))"]
    held = prof.memory_at("end").query("name != '(before this profile)'")
    assert held[[*columns, "name", "bytes"]].to_numpy().tolist() == [
        [str(file), 6, "Cache.add", "In[3]", 4, "Cache().add(5000)", 60_000],
        ["In[2]", 3, "load", "In[3]", 3, "load(1000)", 24_000],
        ["In[2]", 3, "load", "In[3]", 5, "load(10)", 80],
    ]


def test_the_peak_is_named_at_the_line_that_allocates(run, shell):
    run("from epprof_nb import host\nkept = []")
    run(CELL)
    run("%%gpuprofile prof --detail memory\nload(1000)\nload(3)")
    text = as_text(ViewModel(shell.user_ns["prof"]))
    line = "line 3 of `load` in In[2], `kept.append(host.empty(2 * n))`"
    assert f"at the peak (reached by {line})" in text
    run("%%gpuprofile prof --detail memory\nkept.append(host.empty(7))")
    text = as_text(ViewModel(shell.user_ns["prof"]))
    assert "at the peak (reached by line 2, `kept.append(host.empty(7))`)" in text
