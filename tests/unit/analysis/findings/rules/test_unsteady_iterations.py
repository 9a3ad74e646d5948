"""Findings about warm-up, outliers and drift: planted, and without the cause."""

from itertools import pairwise

import numpy as np
import pytest

from epprof_nb.data.table import concat
from tests.helpers.planted import MS, info, of_kind, repeats, steady
from tests.helpers.tiny import call, kernel, line, profile


def test_warm_up_and_outliers_are_told_from_the_steady_state():
    walls = [50 * MS, 20 * MS, *steady()]
    walls[12] = 40 * MS
    prof = repeats(walls)
    phases = prof.steadiness()["phase"].tolist()
    assert phases == ["warm-up"] * 2 + ["steady"] * 10 + ["outlier"] + ["steady"] * 9
    (warm_up,), (outlier,) = of_kind(prof, "warm-up"), of_kind(prof, "outliers")
    assert warm_up.gain_ns == pytest.approx(50 * MS, rel=0.02)
    assert outlier.gain_ns == pytest.approx(30 * MS, rel=0.02)
    assert outlier.text.startswith("1 repeat (12) took 30.")
    assert " longer than a steady one, mostly" in outlier.text
    assert " longer, in all, than 2 steady ones" in warm_up.text
    assert "mostly while the GPU was busy" in outlier.text
    assert outlier.evidence_rows(prof).tolist() == [12]


def test_findings_say_that_repeats_are_added_up():
    total = "Times and gains are sums over 22 repeats."
    found = repeats([50 * MS, 20 * MS, *steady()]).insights()
    assert total in repr(found)
    assert total in found._repr_html_()
    steps = repeats([50 * MS, 20 * MS, *steady()], first_step=0).insights()
    assert "sums over" not in repr(steps)


def test_a_long_first_repeat_like_two_later_ones_is_no_warm_up():
    walls = steady()
    walls[0], walls[8], walls[15] = 50 * MS, 48 * MS, 48 * MS
    assert repeats(walls).steadiness()["phase"].tolist().count("outlier") == 3


def test_time_on_a_queue_of_earlier_repeats_is_not_saved():
    walls = steady()
    walls[12] = 40 * MS
    prof, ends = repeats(walls), np.cumsum(walls).tolist()
    queued = kernel(ends[11], ends[11] + 10 * MS, 1, correlation_id=1)
    more = profile([], [queued], [call(ends[9] + 1, ends[9] + 2, correlation_id=1)])
    prof.tables["activities"] = concat([prof.tables["activities"], more.tables["activities"]])
    prof.tables["api_calls"] = more.tables["api_calls"]
    (found,) = of_kind(prof, "outliers")
    assert found.gain_ns == pytest.approx(20 * MS, rel=0.02)


@pytest.mark.parametrize(("scale", "count"), [(0.5, 1), (0.001, 0)])
def test_outliers_of_a_few_microseconds_are_no_finding(scale, count):
    walls = steady()
    walls[12] = 15 * MS
    prof = repeats([int(wall * scale) for wall in walls])
    assert (prof.steadiness()["phase"] == "outlier").sum() == 1
    assert len(of_kind(prof, "outliers")) == count


def test_drift_is_explained_by_a_clock_that_fell():
    walls = [wall + i * MS // 10 for i, wall in enumerate(steady(40))]
    before = {"gpus": [{"sm_clock_mhz": 1980}]}
    after = {"gpus": [{"sm_clock_mhz": 1400, "temperature_c": 88,
                       "clock_events": ["gpu idle", "hardware thermal slowdown"]}]}  # fmt: skip
    (found,) = of_kind(repeats(walls, gpu={"before": before, "after": after}), "drift")
    assert "fell from 1,980 to 1,400 MHz (88 °C, hardware thermal slowdown)" in found.text
    # 0 to 3.9 ms more than the first repeat.
    assert found.gain_ns == pytest.approx(39 * 40 / 2 * MS / 10, rel=0.1)
    assert found.low_ns < found.gain_ns < found.high_ns
    (unexplained,) = of_kind(repeats(walls), "drift")
    assert "clock" not in unexplained.text


@pytest.mark.parametrize("of", [{}, {"cell": "train.py", "script": "train.py"}, {"cell": "In[1]"}])
def test_scripts_get_no_advice_for_cells(of):
    prof = repeats([90 * MS, *steady()], **of)
    late = profile([line(1, 1, 0, 9 * MS)], [kernel(5 * MS, 9 * MS, 1)], info=info(9 * MS, **of))
    (warm_up,), (idle,) = of_kind(prof, "warm-up"), of_kind(late, "idle")
    is_cell = of.get("cell") == "In[1]"
    assert ("%%gpuprofile --warmup N" in warm_up.remedy) == is_cell
    assert ("before the cell" in idle.remedy) == is_cell
    for found in (warm_up, idle):
        assert ("`epprof run --steps A:B`; `epprof_nb.step()`" in found.remedy) == (not is_cell)


@pytest.mark.parametrize("seed", range(5))
def test_steady_repeats_are_no_finding(seed):
    prof = repeats(steady(seed=seed))
    assert set(prof.steadiness()["phase"]) == {"steady"}
    for kind in ("warm-up", "outliers", "drift"):
        assert not of_kind(prof, kind)


def loop(walls, coalesced=0, work=None, setup="x = f()"):
    """A loop in line 2 whose body has lines 3 and 4; its last rounds may share a row.

    A kernel takes half of each round, or a given time.
    """
    ends = (MS + np.cumsum(walls)).tolist()
    ops = [line(1, 1, 0, MS), line(2, 2, MS, ends[-1] + coalesced * MS)]
    for i, (wall, end) in enumerate(zip(walls, ends, strict=True)):
        ops += [line(10 + 2 * i, 3, end - wall, end - wall // 2, 2),
                line(11 + 2 * i, 4, end - wall // 2, end, 2)]  # fmt: skip
    if coalesced:
        ops.append(line(900, 3, ends[-1], ends[-1] + coalesced * MS, 2, count=coalesced))
    work = [kernel(end - wall, end - wall + (work or wall // 2), 10 + 2 * i)
            for i, (wall, end) in enumerate(zip(walls, ends, strict=True))]  # fmt: skip
    source = f"{setup}\nfor batch in data:\n    y = g(batch)\n    log(y)\n"
    return profile(ops, work, info=info(ops[1]["end_ns"]), sources={"In[1]": source})


@pytest.mark.parametrize("coalesced", [0, 40])
def test_the_warm_up_of_a_loop_is_found(coalesced):
    prof = loop([100 * MS, *steady(12)], coalesced)
    table = prof.steadiness()
    # How long the last known round took is not known if others follow in its row.
    assert len(table) == (12 if coalesced else 13)
    assert table["phase"].tolist()[:2] == ["warm-up", "steady"]
    (found,) = of_kind(prof, "warm-up")
    assert found.text.startswith("The first iteration of line 2 (`for batch in data:`) took 90.")
    assert found.gain_ns == pytest.approx(90 * MS, rel=0.02)
    assert found.evidence_rows(prof).tolist() == [0]
    rows = prof.insights()
    assert rows.loc[rows["kind"] == "warm-up", "line"].tolist() == [2]


@pytest.mark.parametrize(
    ("excess", "more", "count"),
    [
        (3 * MS, {}, 0),
        (8 * MS, {}, 1),
        (3 * MS, {"setup": "begin = time.perf_counter()"}, 1),
    ],
)
def test_first_calls_are_no_warm_up_unless_they_are_measured(excess, more, count):
    """The host takes longer in the first round; the code of the cell may read a clock."""
    prof = loop([10 * MS + excess, *steady(12)], work=5 * MS, **more)
    assert prof.steadiness()["phase"].tolist()[0] == "warm-up"
    assert len(of_kind(prof, "warm-up")) == count


def test_a_first_round_in_which_the_gpu_is_slow_is_a_warm_up():
    prof = loop([13 * MS, *steady(12)])
    times = prof.tables["activities"]
    longer = times["duration_ns"].copy()
    longer[0] += 2 * MS
    prof.tables["activities"] = times.replace(duration_ns=longer, end_ns=times["start_ns"] + longer)
    (found,) = of_kind(prof, "warm-up")
    assert "mostly while the GPU was busy" in found.text


@pytest.mark.parametrize("make", [lambda: loop([100 * MS, *steady(8)]), profile])
def test_without_a_loop_there_are_no_iterations(make):
    assert len(make().steadiness()) == 0


def test_the_setup_of_a_script_is_no_warm_up():
    prof = repeats([90 * MS, *steady()], first_step=0)
    assert prof.steadiness()["number"].tolist() == list(range(1, 21))
    assert not of_kind(prof, "warm-up")
    assert of_kind(repeats([90 * MS, *steady()]), "warm-up")
    assert repeats(steady(), first_step=7).steadiness()["number"].tolist() == list(range(7, 27))


def read_in_each_tenth(rounds=60, *, ahead=True, slow=()):
    """A loop that launches 3 ms in 0.1 ms per round; each tenth round waits for all, if `ahead`.

    Else every round waits for the work of the round before; that of the rounds `slow` takes 30 ms.
    """
    ops, work, calls, now, free, before = [], [], [], 0, 0, 0
    for i in range(rounds):
        begun = now
        calls.append(call(now, now + MS // 20, correlation_id=i, op_id=2 * i + 2))
        start = max(now + MS // 20, free)
        before, free = free, start + (30 if i in slow else 3) * MS
        work.append(kernel(start, free, 2 * i + 2, correlation_id=i, thread_id=1))
        now += MS // 10
        ops.append(line(2 * i + 2, 3, begun, now, 1))
        if i % 10 == 9 or not ahead:
            begun, now = now, max(now, free if ahead else before)
            calls.append(call(begun, now, correlation_id=rounds + i, op_id=2 * i + 3,
                              name="cuStreamSynchronize"))  # fmt: skip
            ops.append(line(2 * i + 3, 4, begun, now, 1))
    ops.insert(0, line(1, 2, 0, now))
    source = "\nfor i in range(60):\n    y = f(x)\n    if i % 10 == 9: print(y)\n"
    return profile(ops, work, calls, info=info(now), sources={"In[1]": source})


def test_rounds_that_wait_for_work_of_others_are_not_slow():
    prof = read_in_each_tenth()
    assert (prof.steadiness()["phase"] == "outlier").sum() == 6
    assert not of_kind(prof, "outliers")


def test_a_round_with_slow_work_of_the_round_before_is_slow():
    (found,) = of_kind(read_in_each_tenth(ahead=False, slow=(17, 40)), "outliers")
    assert found.text.startswith("2 iterations (18, 41) of line 2")
    assert found.gain_ns == pytest.approx(2 * 27 * MS, rel=0.05)


@pytest.mark.parametrize("first", [25 * MS, 90 * MS])
def test_a_first_round_like_later_ones_is_no_warm_up(first):
    walls = steady(40)
    walls[::10] = [first, *[25 * MS] * 3]
    prof = repeats(walls)
    assert len(of_kind(prof, "warm-up")) == (first > 25 * MS)
    (found,) = of_kind(prof, "outliers")
    count = 4 - (first > 25 * MS)
    assert found.gain_ns == pytest.approx(count * 15 * MS, rel=0.02)
    assert "once in 10 repeats" in found.remedy
    walls = steady(40)
    walls[20:23] = [25 * MS] * 3
    (found,) = of_kind(repeats(walls), "outliers")
    assert "other processes" in found.remedy


@pytest.mark.parametrize(("waiting", "kind", "is_drift"), [
    (0.0, "host", True),
    (0.05, "host", True),
    (0.5, "host", False),
    (0.5, "gpu", True),  # it may have worked meanwhile
])  # fmt: skip
def test_other_processes_that_begin_to_use_the_cores_are_no_drift(waiting, kind, is_drift):
    """The iterations become slower by 40 %: the excess is a sixth of their time."""
    prof = loop([round(MS * (10 + 4 * i / 40)) for i in range(40)])
    prof.info["load"] = {"own_cores": 1 - waiting, "other_cores": 1.5, "waiting": waiting}
    prof.info["devices"] = [{"device_id": 0, "kind": kind}]
    assert bool(of_kind(prof, "drift")) == is_drift


@pytest.mark.parametrize(("waiting", "kind", "slow", "is_named"), [
    (0.0, "host", (7, 18), True),
    (0.05, "host", (7, 18), True),  # it explains a part
    (0.1, "host", (7, 18), False),  # 46 of 60 ms
    (0.5, "host", (7, 18), False),
    (0.5, "gpu", (7, 18), True),  # it may have worked meanwhile
    (0.5, "host", (10, 20, 30), True),  # others do not run in every tenth iteration
])  # fmt: skip
def test_iterations_that_other_processes_kept_from_a_core_are_no_outliers(
    waiting, kind, slow, is_named
):
    """Iterations of 10 ms, of which a few took 30 ms longer."""
    prof = loop([MS * (40 if i in slow else 10) + i % 3 for i in range(40)])
    prof.info["load"] = {"own_cores": 1 - waiting, "other_cores": 1.5, "waiting": waiting}
    prof.info["devices"] = [{"device_id": 0, "kind": kind}]
    assert bool(of_kind(prof, "outliers")) == is_named


@pytest.mark.parametrize(("slow", "kinds"), [(None, {"drift"}), (7, {"drift", "outliers"})])
def test_iterations_that_run_more_statements_take_longer(slow, kinds):
    """The inner line runs once in the first iteration, and 30 times in the last."""
    ops, now = [], 0
    for turn in range(30):
        begin = now
        now += 200 * MS if turn == slow else 0
        for i in range(turn + 1):
            ops.append(line(100 * turn + 10 + i, 3, now, now + MS, 100 * turn + 9))
            now += MS
        ops.append(line(100 * turn + 9, 2, begin, now, 1))
    source = "for i in items:\n    for j in items[:i]:\n        f(i, j)\n"
    ops = [line(1, 1, 0, now), *sorted(ops, key=lambda row: row["start_ns"])]
    prof = profile(ops, info=info(now), sources={"In[1]": source})
    found = [f for f in prof.insights().itertuples() if f.kind in ("drift", "outliers", "warm-up")]
    assert {f.kind for f in found} == kinds
    for f in found:
        if f.kind == "drift":
            assert "; it ran 31 statements, the first one 2." in f.text
            assert f.remedy.startswith("A loop inside runs more often")
            assert "memory" not in f.remedy
        else:
            assert f.text.startswith("1 iteration (7) of line 1")


@pytest.mark.parametrize("error", [None, "KeyboardInterrupt"])
@pytest.mark.parametrize("follows", [False, True])
def test_the_iteration_that_an_error_ended_is_not_slow(error, follows):
    """The last of 20 iterations takes 50 times as long as the others."""
    ends = [MS * (i + 1) for i in range(19)] + [69 * MS]
    ops = [line(1, 1, 0, ends[-1])]
    ops += [line(2 + i, 2, begin, end, 1) for i, (begin, end) in enumerate(pairwise([0, *ends]))]
    ops += [line(90, 3, ends[-1], ends[-1] + MS)] * follows
    source = "for i in items:\n    work(i)\nraise KeyboardInterrupt\n"
    prof = profile(ops, info=info(ends[-1] + MS, error=error), sources={"In[1]": source})
    is_interrupted = error is not None and not follows
    assert len(prof.steadiness()) == (19 if is_interrupted else 20)
    assert bool(of_kind(prof, "outliers")) is not is_interrupted
