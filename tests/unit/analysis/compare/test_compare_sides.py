"""`epprof_nb.compare`: differences, noise, and their size."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epprof_nb import compare
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.compare.times_per_repeat import repeat_numbers
from tests.helpers.repeated import MS, TIMES, repeated
from tests.helpers.tiny import line, op, profile, rows


def test_the_slower_op_is_found_and_the_others_are_not():
    old, new = repeated(TIMES), repeated(TIMES | {"y = model(x)": 11 * MS}, seed=1, cell="In[9]")
    result = compare(old, new)
    ops = rows(result.ops)
    assert ops["y = model(x)"]["verdict"] == "slower"
    assert ops["y = model(x)"]["change_low"] < 0.1 < ops["y = model(x)"]["change_high"]
    assert {ops[name]["verdict"] for name in ("load(x)", "y.sum()")} == {"no difference found"}
    assert result.verdict == "slower"
    assert "`y = model(x)` +" in result.reason
    assert rows(result.kernels)["kernel of y = model(x)"]["verdict"] == "slower"
    assert compare(new, old).verdict == "faster"


def test_the_same_code_shows_no_difference():
    found = [
        compare(repeated(TIMES, seed=2 * i), repeated(TIMES, seed=2 * i + 1)) for i in range(25)
    ]
    assert {result.verdict for result in found} == {"no difference found"}
    assert max(result.ops["p_value"].max() for result in found) == 1
    assert sum(len(result.ops.query("verdict in ('slower', 'faster')")) for result in found) <= 1


def test_repeats_that_the_info_of_a_damaged_file_lacks_are_of_no_repeat():
    index = ProfileIndex(profile(info={"repeats": [[0, 5], [5, 10]], "wall_ns": 10}))
    assert repeat_numbers(index, np.array([-1, 0, 1, 2])).tolist() == [-1, 0, 1, -1]


def test_a_drift_between_the_halves_of_a_recording_widens_the_interval():
    steady = repeated(TIMES, seed=1)
    drifting = repeated(TIMES, seed=2)
    bounds = np.array(drifting.info["repeats"])
    durations = np.diff(bounds, axis=1)[:, 0] * np.linspace(1, 1.2, len(bounds))
    ends = np.cumsum(durations).astype(int)
    drifting.info["repeats"] = [[int(e - d), int(e)] for e, d in zip(ends, durations, strict=True)]
    without_work = profile(info=drifting.info), profile(info=steady.info)
    result = compare(without_work[1], without_work[0])
    assert result.verdict == "no difference found"
    assert result.change > 0.08


def test_the_spread_between_recordings_is_measured():
    shifted = {name: round(time * 1.1) for name, time in TIMES.items()}
    old = [repeated(TIMES, seed=1), repeated(shifted, seed=2)]
    new = [repeated(TIMES, seed=3), repeated(shifted, seed=4)]
    assert compare(old[0], new[1]).verdict == "slower"
    result = compare(old, new)
    assert result.verdict == "no difference found"
    assert result.change_low < -0.1
    assert result.change_high > 0.1


def test_several_steady_recordings_show_a_smaller_change():
    slower = {name: round(time * 1.06) for name, time in TIMES.items()}
    one = compare(repeated(TIMES), repeated(slower, seed=1))
    three = compare(
        [repeated(TIMES, seed=i) for i in range(3)],
        [repeated(slower, seed=5 + i) for i in range(3)],
    )
    assert three.verdict == "slower"
    assert three.change_high - three.change_low < one.change_high - one.change_low


def alternated(times, side, *, speed, seed):
    """A recording whose repeats alternated with those of another side, on a drifting machine."""
    info = {"recording": "r", "side": side}
    return repeated(times, seed=seed, speed=speed, noise=0.002, alternated=info)


def test_repeats_that_alternate_show_a_change_smaller_than_the_drift():
    speed = np.exp(np.cumsum(0.03 * np.random.default_rng(5).standard_normal(20)))
    slower = TIMES | {"y = model(x)": round(1.04 * TIMES["y = model(x)"])}
    old, new = (
        alternated(times, side, speed=speed, seed=side)
        for side, times in enumerate((TIMES, slower))
    )
    result = compare(old, new)
    assert result.verdict == "slower"
    assert result.change == pytest.approx(0.03, abs=0.01)
    assert rows(result.ops)["y = model(x)"]["verdict"] == "slower"
    assert rows(result.ops)["load(x)"]["verdict"] == "no difference found"
    back = compare(new, old)
    assert 1 + back.change_high == pytest.approx(1 / (1 + result.change_low))
    same = alternated(TIMES, 1, speed=speed, seed=1)
    assert compare(old, same).verdict == "no difference found"
    # Recordings of different sessions do not share their drift.
    new.info["alternated"] = {"recording": "another", "side": 1}
    assert compare(old, new).verdict == "no difference found"


def test_a_change_of_pairs_is_named_as_one():
    # The machine slows down at half of the repeats, so the medians of both sides differ by 20 %.
    speeds = [np.array([1.0] * fast + [1.5] * (20 - fast)) for fast in (10, 9)]
    old, new = (alternated(TIMES, side, speed=speeds[side], seed=side) for side in range(2))
    result = compare(old, new)
    assert abs(result.change) < 0.01
    assert re.search(r"per repeat: \S+ % \(median of the pairs[;)]", result.reason)
    html = result._repr_mimebundle_()["text/html"]
    for text in (repr(result), result.to_markdown(), html):
        assert "median of the pairs" in text
        assert "change of pairs" in text
    lines = repr(result).splitlines()
    head = next(line for line in lines if line.startswith("op "))
    row = next(line for line in lines if line.startswith("load(x)"))
    assert head.index("change of pairs") + len("change of pairs") == row.index(" %") + 2
    for run in (old, new):
        del run.info["alternated"]
    assert "pairs" not in repr(compare(old, new))


def test_times_of_pairs_have_the_signs_of_their_changes():
    # The new code is 2 % slower in each pair, but the machine slowed down at half of the repeats,
    # so that the median of its repeats is lower by a third.
    speeds = [np.array([1.5] * slow + [1.0] * (20 - slow)) for slow in (11, 9)]
    slower = {name: round(1.02 * time) for name, time in TIMES.items()}
    old, new = (
        alternated(times, side, speed=speeds[side], seed=side)
        for side, times in enumerate((TIMES, slower))
    )
    result = compare(old, new)
    total = result._result.total
    assert result.change == pytest.approx(0.02, abs=0.005)
    assert total.after_ns / total.before_ns - 1 == pytest.approx(result.change)
    assert (result.ops["contribution_ns"] > 0).all()
    for side in ("", "elapsed_"):
        times = result.ops[f"{side}after_ns"] / result.ops[f"{side}before_ns"] - 1
        np.testing.assert_allclose(times, result.ops[f"{side}change"], atol=1e-6)
    assert result.ops["contribution_ns"].sum() == pytest.approx(
        total.after_ns - total.before_ns, rel=0.4
    )


def test_added_removed_and_renamed_ops_are_told_apart():
    old = repeated({"a": MS, "y = f(b)": MS, "c": MS, "gone": MS})
    new = repeated({"a": MS, "y = f(b2)": MS, "c": MS})
    status = rows(compare(old, new).ops)
    assert {name: row["status"] for name, row in status.items()} == {
        "a": "matched", "y = f(b2)": "renamed", "c": "matched", "gone": "removed",
    }  # fmt: skip
    assert status["y = f(b2)"]["old_name"] == "y = f(b)"
    assert status["gone"]["verdict"] == "removed"
    assert rows(compare(new, old).ops)["gone"]["status"] == "added"


def test_equal_siblings_are_matched_in_order():
    def loop(second):
        ops = [op(1, "In[1]", 0, 10**9, op_type="cell")]
        bounds = []
        for repeat in range(12):
            now = 1000 * MS * repeat
            for i, time in enumerate((100 * MS, second)):
                row = line(2 + 2 * repeat + i, 1 + i, now, now + time, 1, repeat=repeat)
                ops.append(row | {"name": "step()"})
                now += time
            bounds.append([1000 * MS * repeat, (1000 * repeat + 500) * MS])
        return profile(ops, info={"repeats": bounds})

    frame = compare(loop(100 * MS), loop(200 * MS)).ops
    assert frame["before_ns"].tolist() == [100 * MS, 100 * MS]
    assert frame["after_ns"].tolist() == [200 * MS, 100 * MS]
    assert frame["verdict"].tolist() == ["slower", "no difference found"]
    assert set(frame["measure"]) == {"host"}


def test_a_short_op_of_the_host_differs_from_one_recording_to_the_next():
    def copies(copy, seed, **more):
        host = [{"device_id": 0, "name": "host", "kind": "host"}]
        times = {"x = load()": 20 * MS, "z = host.to_host(y)": copy}
        return repeated(times, seed=seed, devices=host, **more)

    name = "z = host.to_host(y)"
    found = rows(compare(copies(90_000, 0), copies(130_000, 1)).ops)[name]
    assert (found["verdict"], found["elapsed_verdict"]) == ("cannot tell", "cannot tell")
    # A larger difference is a change of the code.
    assert rows(compare(copies(90_000, 0), copies(300_000, 1)).ops)[name]["verdict"] == "slower"
    in_turn = [
        copies(ns, side, alternated={"recording": "r", "side": side})
        for side, ns in enumerate((90_000, 130_000))
    ]
    assert rows(compare(*in_turn).ops)[name]["verdict"] == "slower"
    several = [
        [copies(ns, 10 * side + i) for i in range(3)] for side, ns in enumerate((90_000, 130_000))
    ]
    assert rows(compare(*several).ops)[name]["verdict"] == "slower"


def test_ops_below_one_percent_of_the_repeat_are_not_named_in_the_reason():
    old = repeated({"large": 100 * MS, "small": MS // 2}, noise=0.001)
    new = repeated({"large": 110 * MS, "small": 5 * MS // 8}, noise=0.001, seed=1)
    result = compare(old, new)
    assert set(result.ops["verdict"]) == {"slower"}
    assert "Changed: `large` +" in result.reason
    assert "small" not in result.reason
    grown = repeated({"large": 100 * MS, "small": 5 * MS}, noise=0.001, seed=1)
    assert "Changed: `small` +" in compare(old, grown).reason


def test_a_change_of_almost_100_percent_is_written_as_a_number():
    old = repeated({"a": MS}, noise=0.001)
    text = repr(compare(old, repeated({"a": round(1.996 * MS)}, noise=0.001)))
    assert "+100 %" in text
    assert ">" not in text


def test_work_that_outlasts_its_repeat_counts_as_elapsed():
    def queued(time):
        prof = repeated({"launch()": time}, noise=0.001)
        prof.info["repeats"] = [[100 + i * 10, 110 + i * 10] for i in range(20)]
        return prof

    result = compare(queued(MS), queued(2 * MS))
    assert result.verdict == "slower"
    assert result.change == pytest.approx(1, abs=0.05)


TREES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(1, 5)), min_size=1, max_size=6,
    unique_by=lambda item: item[0],
)  # fmt: skip


@given(TREES, TREES, st.integers(0, 3), st.floats(0, 0.2))
@settings(max_examples=12, deadline=None)
def test_comparisons_mirror_each_other_and_are_silent_on_equal_ones(one, other, seed, noise):
    a, b = (
        repeated({name: time * MS for name, time in tree}, noise=noise, repeats=12, seed=seed + i)
        for i, tree in enumerate((one, other))
    )
    silent = compare(a, a)
    assert silent.verdict == "no difference found"
    assert set(silent.ops["verdict"]) == {"no difference found"}
    assert (silent.ops["change"] == 0).all()
    forth, back = compare(a, b), compare(b, a)
    mirrored = {"faster": "slower", "slower": "faster", "added": "removed", "removed": "added"}
    assert forth.verdict == mirrored.get(back.verdict, back.verdict)
    if forth.change_low is not None:
        assert 1 + forth.change_low == pytest.approx(1 / (1 + back.change_high))
    # A renamed op has its new name; its old one is where the other comparison has the new.
    keys = [frame["old_name"].astype(object).fillna(frame["name"]) for frame in (forth.ops,)]
    left = forth.ops.assign(key=keys[0]).set_index("key").sort_index()
    right = back.ops.set_index("name").sort_index()
    assert left.index.tolist() == right.index.tolist()
    verdicts = right["verdict"].astype(object).map(lambda v: mirrored.get(v, v))
    assert left["verdict"].tolist() == verdicts.tolist()
    known = left["change"].notna().to_numpy()
    np.testing.assert_allclose(
        1 + left["change_low"].to_numpy()[known], 1 / (1 + right["change_high"].to_numpy()[known])
    )
