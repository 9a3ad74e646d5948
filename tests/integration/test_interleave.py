"""``%%gpuprofile --interleave``: the baseline's code alternates with the cell's code."""

from __future__ import annotations

import numpy as np
import pytest
from IPython.core.error import UsageError

import epprof_nb
from epprof_nb.views.comparison import Comparison
from tests.helpers.time_limits import TimeLimits

SETUP = (
    "import time\nimport numpy as np\nfrom epprof_nb import host\n"
    "x = host.to_device(np.ones(4))\norder = []"
)
OLD = (
    "%%gpuprofile old -q --repeat 12\norder.append('old')\n"
    "host.launch(lambda a: time.sleep(0.004), x, name='slow')"
)
NEW = (
    "%%gpuprofile new -q --repeat {} --baseline old --interleave{}\n"
    "order.append('new')\nhost.launch(lambda a: time.sleep(0.002), x, name='quick')\nlen(order)"
)


@pytest.fixture
def prepared(run, shell):
    run(SETUP)
    run(OLD)
    shell.user_ns["order"].clear()


@pytest.mark.usefixtures("prepared")
def test_repeats_of_both_alternate_and_each_has_a_profile(run, shell, shown):
    result = run(NEW.format(12, ""))
    names = shell.user_ns
    pairs = np.array(names["order"]).reshape(12, 2).tolist()
    assert pairs == [["new", "old"], ["old", "new"]] * 6
    assert result.result == 24  # of the last repeat, which is one of the new code
    new, old = names["new"], names["new"].baseline
    assert names["old"] is not old
    for prof, cell, kernel, ms in ((old, "In[2]", "slow", 4), (new, "In[3]", "quick", 2)):
        assert prof.info["cell"] == cell
        assert set(prof.ops["cell"].dropna()) == {cell}
        kernels = prof.activities[prof.activities["kind"] == "kernel"]
        assert kernels["name"].tolist() == [kernel] * 12
        assert kernels["repeat"].tolist() == list(range(12))
        # The other code's time is cut out, and each kernel is still inside its repeat.
        assert (kernels["duration_ns"] >= ms * 1_000_000).all()
        bounds = np.array(prof.info["repeats"])
        assert (kernels["start_ns"] >= bounds[:, 0]).all()
        done = np.maximum(bounds[:, 1], kernels["end_ns"].to_numpy())
        assert (bounds[1:, 0] == done[:-1]).all()
        assert prof.info["recorded"]["shown"]["kernel"] == 12
        assert sum(prof.info["attribution"].values()) == len(prof.activities)
        # The other sources are files of the calling stacks: those of the tests.
        assert [name for name in prof.sources if name.startswith("In[")] == [cell]
    comparison = shown[-1]
    assert isinstance(comparison, Comparison)
    assert "The repeats of both alternated" in comparison.reason
    assert epprof_nb.compare(old, new).reason == comparison.reason
    assert set(comparison.ops["status"]) == {"renamed", "added"}  # two edited lines, one new one


@pytest.mark.usefixtures("prepared")
def test_an_odd_number_of_repeats_and_warm_ups(run, shell):
    run(NEW.format(11, " --warmup 1"))
    assert shell.user_ns["order"][:2] == ["old", "new"]
    rounds = shell.user_ns["order"][2:]
    assert rounds == ["old", "new"] + ["new", "old", "old", "new"] * 5
    new = shell.user_ns["new"]
    assert [len(prof.info["repeats"]) for prof in (new.baseline, new)] == [11, 11]
    assert new.info["added_ns"] == {"reason": "what recording takes was not timed"}
    assert "added_ns" not in new.baseline.info


@pytest.mark.usefixtures("prepared")
def test_saved_profiles_compare_alike(run, shell, tmp_path):
    run(NEW.format(12, ""))
    new = shell.user_ns["new"]
    files = [tmp_path / "old.epprof", tmp_path / "new.epprof"]
    for prof, path in zip((new.baseline, new), files, strict=True):
        prof.save(path)
    direct, loaded = (epprof_nb.compare(*p) for p in (
        (new.baseline, new), [epprof_nb.load(path) for path in files],
    ))  # fmt: skip
    assert direct.reason == loaded.reason
    assert "alternated" in direct.reason


@pytest.mark.usefixtures("prepared")
def test_an_error_names_the_cell_it_is_from(run, shell, shown, capsys):
    run("%%gpuprofile old -q --repeat 12\ndata = []\nif order: gone()")
    capsys.readouterr()
    result = run(NEW.format(12, ""))
    captured = capsys.readouterr()
    assert isinstance(result.error_in_exec, NameError)
    assert "NameError in the code of the baseline old (In[3])" in captured.err
    assert "if order: gone()" in captured.out
    assert "cell_run.py" not in captured.out
    assert shown[-1].verdict == "cannot be compared"
    new = shell.user_ns["new"]
    assert (new.info["error"], new.baseline.info["error"]) == (None, "NameError")
    assert "The new recording ended" not in shown[-1].reason


@pytest.mark.usefixtures("prepared")
def test_an_error_in_the_new_code_is_not_one_of_the_baseline(run, shell, shown):
    run("%%gpuprofile new -q --repeat 12 --baseline old --interleave\nif len(order) > 4: gone()")
    new = shell.user_ns["new"]
    assert (new.info["error"], new.baseline.info["error"]) == ("NameError", None)
    assert shown[-1].verdict == "cannot be compared"
    assert "The old recording ended" not in shown[-1].reason


@pytest.mark.usefixtures("prepared")
def test_a_time_limit_ends_the_recording_and_not_the_code(run, shell, shown, capsys, monkeypatch):
    shell.user_ns["limits"] = TimeLimits(monkeypatch)
    cell = NEW.format(12, " --time-limit 0.03")
    result = run(cell.replace("len(order)", "if len(order) == 9: limits.reach()\nlen(order)"))
    assert result.result == 24
    new = shell.user_ns["new"]
    assert [len(prof.info["repeats"]) for prof in (new, new.baseline)] == [5, 4]
    assert shown[-1].verdict == "cannot be compared"
    assert capsys.readouterr().err == ""


def test_what_changed_since_the_recording_is_said(run, capsys):
    run("def step(): return sum(range(100))")
    code = "\ndef own(): step()\nown()"
    run("%%gpuprofile old -q --repeat 12" + code)
    run("%%gpuprofile new -q --repeat 12 --baseline old --interleave" + code)
    assert "changed since" not in capsys.readouterr().err
    run("def step(): return 1\ndef own(): return 1")
    run("%%gpuprofile new -q --repeat 12 --baseline old --interleave" + code)
    text = capsys.readouterr().err
    assert "1 name in the code of old (In[2]) changed since it was recorded: step." in text
    assert "the cells have the same code, no difference is measured" in text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--interleave --repeat 20", "needs a baseline"),
        ("--interleave --baseline old", "at least 10 repeats"),
        ("--interleave --baseline made --repeat 20", "is not a profile of a cell of this kernel"),
        ("--interleave --baseline waits --repeat 20", "top-level await"),
    ],
)
def test_what_cannot_alternate_is_refused_before_anything_runs(run, shell, options, text):
    run("import asyncio, epprof_nb\nwith epprof_nb.profile() as made: pass\nx = 0")
    run("%%gpuprofile old -q --repeat 12\nx += 1")
    run("%%gpuprofile waits -q --repeat 12\nawait asyncio.sleep(0)")
    result = run(f"%%gpuprofile new {options}\nran = 1")
    assert isinstance(result.error_in_exec, UsageError)
    assert text in str(result.error_in_exec)
    assert "ran" not in shell.user_ns
    assert shell.user_ns["x"] == 12


def test_a_result_can_be_the_next_baseline_and_the_line_magic_alternates(run, shell, shown):
    run("%%gpuprofile one -q --repeat 12\nn = 1")
    run("%%gpuprofile two -q --repeat 12 --baseline one --interleave\nn = 2")
    run("%gpuprofile -q -o three --repeat 12 --baseline two --interleave n = 3")
    three = shell.user_ns["three"]
    assert set(three.baseline.ops["name"]) == {"In[2]", "n = 2"}
    assert {"n = 3"} < set(three.ops["name"])
    assert shell.user_ns["n"] == 3
    assert [type(item) for item in shown] == [Comparison, Comparison]


@pytest.mark.usefixtures("prepared")
def test_assistants_see_the_profiles_of_the_notebook_and_their_baselines(run, shell):
    from epprof_nb.mcp.notebook_profiles import profiles_of_notebook

    run(NEW.format(12, ""))
    found = profiles_of_notebook()
    assert list(found) == ["old", "new", "new.baseline"]
    assert found["new.baseline"] is shell.user_ns["new"].baseline
    run("del old")
    assert list(profiles_of_notebook()) == ["new", "new.baseline"]


@pytest.mark.usefixtures("prepared")
def test_memory_of_both_sides_is_not_given_to_one(run, shell):
    run(NEW.replace("--repeat", "--detail memory --repeat").format(10, "") + "\nhost.empty(1000)")
    for side in (shell.user_ns["new"], shell.user_ns["new"].baseline):
        assert side.memory_at().empty
        assert any("The holders of the memory are unknown" in note for note in side.info["notes"])
