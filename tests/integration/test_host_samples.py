"""Samples of the host in functions of cells and of files, in a notebook and in a script."""

from __future__ import annotations

import sys

import epprof_nb

MODULE = """
def augment(seconds):
    import time
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
"""
CELL = """\
def prepare(seconds):
    total = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        total += 1
"""
WORK = "for _ in range(6):\n    prepare(.03)\n    data_of_the_test.augment(.06)\n"


def places(prof):
    """Sampled time by function, file and line, the longest first."""
    found = prof.host_samples.groupby(["function", "file"], observed=True)["interval_ns"].sum()
    return found.sort_values(ascending=False)


def test_functions_of_a_cell_and_of_a_file(run, shell, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "data_of_the_test.py"
    file.write_text(MODULE)
    try:
        run("import data_of_the_test, time")
        run(CELL)
        run(f"%%gpuprofile prof\n{WORK}")
        run(f"%%gpuprofile off --no-samples\n{WORK}")
    finally:
        sys.modules.pop("data_of_the_test", None)
    prof = shell.user_ns["prof"]
    found = places(prof)
    assert set(found.index[:2]) == {("augment", str(file)), ("prepare", "In[2]")}
    assert found.iloc[:2].sum() > 0.5 * found.sum()
    samples = prof.host_samples.query("function == 'prepare'")
    assert set(samples["line"]) <= {3, 4, 5}
    assert (prof.host_samples["start_ns"].diff().dropna() >= 0).all()
    assert prof.host_samples["start_ns"].between(0, prof.wall_ns).all()
    assert len(shell.user_ns["off"].host_samples) == 0


SCRIPT = f"""
import time, data_of_the_test
{CELL}
{WORK}
"""


def test_functions_of_a_script(profiled, tmp_path):
    (tmp_path / "data_of_the_test.py").write_text(MODULE)
    done = profiled(SCRIPT, options=["-o", "run.epprof"], fresh=True)
    assert done.returncode == 0, done.stderr
    found = places(epprof_nb.load(tmp_path / "run.epprof"))
    assert {function for function, _ in found.index[:2]} == {"augment", "prepare"}
    done = profiled(SCRIPT, options=["-o", "run.epprof", "--no-samples"])
    assert done.returncode == 0, done.stderr
    assert len(epprof_nb.load(tmp_path / "run.epprof").host_samples) == 0
