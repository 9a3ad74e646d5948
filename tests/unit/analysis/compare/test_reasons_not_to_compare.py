"""Comparisons that would mislead: refused with a reason, or bounded by the recordings."""

import re

import numpy as np
import pytest
from click.testing import CliRunner

from epprof_nb import compare
from epprof_nb.cli import main
from tests.helpers.repeated import MS, TIMES, repeated
from tests.helpers.tiny import op, profile, rows


@pytest.mark.parametrize(
    ("change", "text", "allowed"),
    [
        ({"repeats": 9}, "9 repeats", None),
        ({"devices": [{"device_id": 0, "name": "GPU Y"}]}, "GPU X, the new on GPU Y", "devices"),
        ({"recorded": {"dropped": 3}}, "3 activities", "dropped"),
        ({"error": "ValueError"}, "ValueError", None),
        (
            {"gpu": {"after": {"gpus": [{"name": "GPU X", "sm_clock_mhz": 1000}]}}},
            "SM clock differs by 10 %",
            "clocks",
        ),
    ],
)
def test_misleading_comparisons_are_refused_in_words(change, text, allowed):
    clocks = {"gpu": {"after": {"gpus": [{"name": "GPU X", "sm_clock_mhz": 1100}]}}}
    old, new = repeated(TIMES, **clocks), repeated(TIMES, **clocks | change)
    result = compare(old, new)
    assert result.verdict == "cannot be compared"
    assert text in result.reason
    assert result.change_low is None
    assert set(result.ops["verdict"]) == {"not tested"}
    if allowed:
        result = compare(old, new, allow=[allowed])
        assert result.verdict == "no difference found"
        assert text in " ".join(result.notes)
        assert text in repr(result)


def test_other_shapes_and_executions_are_refused():
    def nodes(shape, executions):
        ops, bounds = [], []
        for repeat in range(12):
            start = 1000 * repeat
            ops += [
                op(100 * repeat + i, "MatMul_3", start + 10 * i, start + 10 * i + 9,
                   op_type="MatMul", category="node", input_shapes=shape, repeat=repeat)
                for i in range(executions)
            ]  # fmt: skip
            bounds.append([start, start + 900])
        return profile(ops, info={"repeats": bounds})

    base = nodes("float[8,8]", 2)
    assert "float[16,8] in the new" in compare(base, nodes("float[16,8]", 2)).reason
    result = compare(base, nodes("float[8,8]", 3))
    assert "`MatMul_3`: 2 in each repeat of the old recording, 3 in the new" in result.reason
    same = compare(base, nodes("float[8,8]", 2))
    assert same.verdict == "no difference found"
    assert same.nodes["op_type"].tolist() == ["MatMul"]
    assert same.nodes["count_before"].tolist() == [2]


def test_counts_of_single_runs_are_not_those_of_repeats():
    def runs(times):
        return profile([op(j, "part", 9 * j, 9 * j + 8) for j in range(times)], info={})

    reason = compare(runs(2), runs(3)).reason
    assert "ran a different number of times, such as `part`: 2 in the old" in reason
    assert "each repeat" not in reason


def test_garbage_collections_may_differ_in_number():
    def collecting(times, finalized=1):
        ops, bounds = [], []
        for repeat in range(12):
            start, first = 1000 * repeat, 100 * repeat
            ops.append(op(first, "part", start, start + 800, repeat=repeat))
            for i in range(times):
                at = start + 50 * i
                ops.append(
                    op(first + 10 * i + 1, "garbage collection", at, at + 40, first, op_type="gc",
                       source="python", repeat=repeat)
                )  # fmt: skip
                ops += [
                    op(first + 10 * i + 2 + j, "close", at + j, at + j + 1, first + 10 * i + 1,
                       repeat=repeat)
                    for j in range(finalized)
                ]  # fmt: skip
            bounds.append([start, start + 900])
        return profile(ops, info={"repeats": bounds})

    result = compare(collecting(5), collecting(2))
    assert result.verdict == "no difference found", result.reason
    assert compare(collecting(5, finalized=2), collecting(5)).verdict == "no difference found"


def test_a_refusal_names_the_option_that_compares_all_the_same():
    def calls(count):
        bounds = [[1000 * i, 1000 * i + 900] for i in range(12)]
        ops = [
            op(100 * i + j, "part", 1000 * i + 9 * j, 1000 * i + 9 * j + 8, repeat=i)
            for i in range(12)
            for j in range(count)
        ]
        return profile(ops, info={"repeats": bounds})

    counts = compare(calls(2), calls(3))
    assert "`epprof compare --allow counts`" in counts.reason
    allowed = compare(calls(2), calls(3), allow=["counts"])
    assert "--allow" not in repr(allowed)
    other = {"devices": [{"device_id": 0, "name": "GPU Y"}]}
    devices = compare(repeated(TIMES), repeated(TIMES, **other))
    assert 'allow=["devices"]' in devices.reason
    # No option allows too few repeats.
    assert "allow" not in compare(repeated(TIMES), repeated(TIMES, repeats=9, **other)).reason


def runs_of_session(recorded, node_ms, sizes=(8,)):
    """Twelve repeats of a run; only the nodes of the first `recorded` runs are known.

    The inputs of the nodes repeat these sizes.
    """
    ops, bounds = [], []
    for repeat in range(12):
        start, state = 1000 * MS * repeat, "recorded" if repeat < recorded else "not recorded"
        more = {"repeat": repeat, "session": 0}
        run = {"op_type": "run", "category": "session", "args": {"nodes": state}}
        ops.append(op(10 * repeat + 1, "run", start, start + 800 * MS, **run, **more))
        if repeat < recorded:
            shape = f"float[{sizes[repeat % len(sizes)]}]"
            more |= {"op_type": "MatMul", "category": "node", "input_shapes": shape}
            number = 10 * repeat + 2
            ops.append(op(number, "MatMul_3", start, start + node_ms * MS, number - 1, **more))
        bounds.append([start, start + 900 * MS])
    return profile(ops, info={"repeats": bounds})


@pytest.mark.parametrize("recorded", [2, 9])
def test_nodes_of_some_runs_have_the_times_of_these(recorded):
    sides = runs_of_session(recorded, 400), runs_of_session(3, 500)
    result = compare(*sides, allow=["options"])
    (node,) = result.nodes.to_dict("records")
    assert (node["before_ns"], node["after_ns"], node["verdict"]) == (
        400 * MS,
        500 * MS,
        "not tested",
    )
    assert (node["count_before"], node["count_after"]) == (1, 1)
    assert f"in {recorded} of 12 repeats of the old code and in 3 of 12" in repr(result)
    assert "`--ort-nodes every`" in repr(result)
    assert rows(result.ops)["run"]["verdict"] == "no difference found"


@pytest.mark.parametrize(
    ("old", "new", "is_refused"),
    [
        ((12, [1, 2, 3]), (12, [1, 2, 3]), False),
        ((12, [1, 2, 3]), (12, [3, 1, 2]), False),
        ((12, [1, 2, 3]), (12, [1, 2, 4]), True),
        ((3, [1, 2]), (12, [1, 2, 3]), False),  # the others may have had size 3
        ((3, [1, 4]), (12, [1, 2, 3]), True),
        ((2, [1, 2]), (2, [3, 4]), False),
        ((1, [1]), (1, [2]), False),
        ((3, [8]), (3, [16]), True),  # all that were recorded had one size
    ],
)
def test_shapes_differ_if_those_of_recorded_runs_show_it(old, new, is_refused):
    sides = [runs_of_session(recorded, 400, sizes) for recorded, sizes in (old, new)]
    for pair in (sides, sides[::-1]):
        result = compare(*pair, allow=["options"])
        assert (result.verdict == "cannot be compared") == is_refused
        assert ("had different input shapes" in result.reason) == is_refused


def test_nodes_of_all_runs_are_tested_without_a_note():
    result = compare(runs_of_session(12, 400), runs_of_session(12, 500))
    assert result.nodes["verdict"].tolist() == ["slower"]
    assert result.notes == ()
    without = compare(runs_of_session(12, 400), runs_of_session(0, 0))
    assert without.nodes["verdict"].tolist() == ["removed"]
    assert "in all repeats of the old code and in no repeat of the new code" in repr(without)
    neither = compare(runs_of_session(0, 0), runs_of_session(0, 0))
    assert "No repeat has the nodes of all runs of ONNX Runtime" in repr(neither)
    assert "Their times" not in repr(neither)


def test_a_recording_compared_with_itself_is_named(tmp_path):
    made = repeated(TIMES)
    made.save(tmp_path / "x.epprof")
    file = str(tmp_path / "x.epprof")
    result = CliRunner().invoke(main, ["compare", file, file])
    assert result.exit_code == 0
    assert "both sides have the same one" in result.output
    assert "same one" in compare([made, repeated(TIMES, seed=1)], [made]).reason
    assert "same one" not in compare(made, repeated(TIMES, seed=1)).reason
    # Without repeats, too.
    single = repeated(TIMES, repeats=1)
    assert "same one" in compare(single, single).reason


def test_an_interval_that_says_nothing_is_not_shown():
    loud = [repeated({"a": MS}, noise=1.5, repeats=12, seed=seed) for seed in range(2)]
    unclear = compare(*loud)
    assert unclear.verdict == "cannot tell"
    assert unclear.ops["verdict"].tolist() == ["cannot tell"]
    assert unclear.change_high > 1
    assert "vary too much to tell whether the time changed" in unclear.reason
    assert "would be found" not in unclear.reason
    assert "Record more repeats, or both versions alternately, while" in unclear.reason
    shown = [line for line in unclear.to_markdown().splitlines() if "varies too much" in line]
    assert [line.split(" | ")[0] for line in shown] == ["| `a`", "| whole repeat"]
    assert unclear.to_markdown().startswith("**cannot tell**")
    assert repr(unclear).startswith("cannot tell\n")
    assert compare(repeated(TIMES), repeated(TIMES, seed=1)).to_markdown().startswith("**no diff")
    slower = compare(loud[0], repeated({"a": 40 * MS}, noise=1.5, repeats=12, seed=3))
    assert slower.verdict == "slower"
    assert "vary too much to tell how large the change is" in slower.reason
    assert " to +" not in repr(slower)
    # A large change that is well known is shown.
    assert " to +" in repr(compare(repeated({"a": MS}), repeated({"a": 50 * MS}, seed=1)))


def test_repeats_that_alternated_are_not_advised_to():
    old, new = (
        repeated({"a": MS}, noise=1.5, seed=side, alternated={"recording": "r", "side": side})
        for side in range(2)
    )
    result = compare(old, new)
    assert "Record more repeats while no other program uses the machine." in result.reason
    assert "alternately" not in result.reason


def test_recordings_that_drift_by_far_are_too_unsteady():
    def drifting(steps, seed, time=MS):
        return repeated({"a": time}, noise=0.05, seed=seed, speed=np.repeat(steps, 5))

    old = drifting([1, 3, 9, 27], 0)
    for new in (old, drifting([27, 1, 3, 9], 1)):
        result = compare(old, new)
        assert result.verdict == "cannot tell"
        assert "too unsteady to compare: their times drift by more than 50 %." in result.reason
        assert "assumed" not in result.reason
    # The interval excludes 1 all the same if the change is larger than the drift.
    slower = compare(old, drifting([1, 3, 9, 27], 1, time=10_000 * MS))
    assert slower.verdict == "slower"
    assert "too unsteady to tell how large the change is: their times drift" in slower.reason
    little = compare(*(drifting([1, 1.1, 1.2, 1.3], seed) for seed in range(2)))
    assert re.search(r"may differ by \d\d % \(because their times drift\)", little.reason)


def test_one_run_each_gives_the_command_that_settles_it():
    result = compare(repeated(TIMES, repeats=1), repeated(TIMES, repeats=1), names=("a", "b"))
    assert result.verdict == "cannot be compared"
    assert "One run each" in result.reason
    assert "Single runs give no verdict, however large the difference" in result.reason
    assert "differ by up to 15 %, and on a busy one by more" in result.reason
    assert "`%%gpuprofile b --repeat 20 --baseline a`" in result.reason
    assert len(result.ops) == 3
    assert "`with` block, call `epprof_nb.step()` at the start of each" in result.reason


def test_invalid_arguments_are_refused():
    prof = repeated(TIMES)
    with pytest.raises(TypeError, match="new must be a profile"):
        compare(prof, prof.ops)
    with pytest.raises(ValueError, match="old has no profile"):
        compare([], prof)
    with pytest.raises(ValueError, match="allow must list"):
        compare(prof, prof, allow=["noise"])
