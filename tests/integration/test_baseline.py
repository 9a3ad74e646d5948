"""``%%gpuprofile --baseline``: the comparison under the cell."""

from __future__ import annotations

import pytest
from IPython.core.error import UsageError

from epprof_nb.views.comparison import Comparison

CELL = "%%gpuprofile {} --repeat 12{}\ntotal = sum(range(2000))"


def test_the_comparison_is_shown_below_the_profile(run, shell, shown):
    run(CELL.format("old", ""))
    run(CELL.format("new", " --baseline old"))
    assert shown[:2] == [shell.user_ns["old"], shell.user_ns["new"]]
    comparison = shown[2]
    assert isinstance(comparison, Comparison)
    assert comparison.ops["name"].tolist() == ["total = sum(range(2000))"]
    assert comparison.ops["status"].tolist() == ["matched"]


def test_a_baseline_can_be_the_variable_that_is_assigned(run, shell, shown):
    run(CELL.format("prof", ""))
    before = shell.user_ns["prof"]
    run(CELL.format("prof", " --baseline prof"))
    assert shell.user_ns["prof"] is not before
    assert isinstance(shown[2], Comparison)


def test_a_baseline_can_be_a_file_or_several_profiles(run, shell, shown, tmp_path):
    path = tmp_path / "old.epprof"
    run(CELL.format("old", f" --save {path}"))
    run(CELL.format("new", f" --baseline {path}"))
    run("olds = [old, old]")
    run(CELL.format("new", " --baseline olds"))
    assert [type(item) for item in shown[2::2]] == [Comparison, Comparison]


def test_without_repeats_the_command_that_settles_it_names_the_variables(run, shown):
    run("%%gpuprofile one\nx = 1")
    run("%%gpuprofile two --baseline one\nx = 1")
    assert shown[2].verdict == "cannot be compared"
    assert "`%%gpuprofile two --repeat 20 --baseline one`" in shown[2].reason


@pytest.mark.parametrize(
    ("baseline", "text"),
    [("nothing", "no such variable"), ("number", "int"), ("no.epprof", "cannot be read")],
)
def test_a_wrong_baseline_is_refused_before_the_cell_runs(run, shell, shown, baseline, text):
    run("number = 3")
    result = run(f"%%gpuprofile new --baseline {baseline}\nran = 1")
    assert isinstance(result.error_in_exec, UsageError)
    assert text in str(result.error_in_exec)
    assert "ran" not in shell.user_ns
    assert shown == []


def test_the_line_magic_compares_too(run, shell, shown):
    run("%gpuprofile -o old --repeat 12 sum(range(2000))")
    run("%gpuprofile -o new --repeat 12 --baseline old sum(range(2000))")
    assert isinstance(shown[2], Comparison)


def test_quiet_shows_the_comparison_alone(run, shown):
    run(CELL.format("old", " --quiet"))
    run(CELL.format("new", " --quiet --baseline old"))
    assert [type(item) for item in shown] == [Comparison]
