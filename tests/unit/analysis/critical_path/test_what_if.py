"""what_if: against the program that really takes the other time."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import epprof_nb
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.critical_path import profiler_costs
from epprof_nb.analysis.critical_path.what_if_replay import Replay
from epprof_nb.core.stream_threads import stream_thread_name
from epprof_nb.data.schema import HOST_SAMPLES
from tests.helpers import tiny
from tests.helpers.planted import info
from tests.helpers.tiny import call, kernel, line, op, profile
from tests.helpers.training import framework
from tests.helpers.walked_stacks import stack_rows, with_stacks

BACK = 7


def run(program):
    """Execute steps on a host thread and two streams, and return the profile.

    A step is ("host", name, ns), ("launch", name, ns of the host, ns of the device, stream) or
    ("wait",), which waits for the first stream.
    """
    now, done, work, calls, ops = 0, {7: 0, 8: 0}, [], [], []
    for number, (what, *how) in enumerate(program, 1):
        start = now
        if what == "host":
            name, ns = how
            now += ns
            ops.append(op(number, name, start, now))
        elif what == "launch":
            name, ns, length, stream = how
            now += ns
            begin = max(done[stream], now)
            done[stream] = begin + length
            more = {"name": name, "stream_id": stream, "correlation_id": number}
            work.append(kernel(begin, done[stream], **more))
            calls.append(call(start, now, correlation_id=number))
        else:
            now = max(now, done[7]) + BACK
            calls.append(call(start, now, correlation_id=number, name="cuStreamSynchronize"))
            work.append({**kernel(start, now, correlation_id=number, stream_id=7),
                         "kind": "synchronization", "name": "stream"})  # fmt: skip
    return profile(ops, work, calls, info=info(max(now, *done.values())))


def random_program(seed, streams=(7,)):
    rng = np.random.default_rng(seed)
    scale = rng.choice([1, 20])  # bound by the host, or by the device
    program = []
    for _ in range(200):
        what = rng.choice(["host", "launch", "wait"], p=[0.3, 0.5, 0.2])
        name, ns = str(rng.choice(["a", "b", "c"])), int(rng.integers(1, 2_000))
        program.append({
            "host": ("host", f"work {name}", ns),
            "launch": ("launch", f"kernel {name}", ns // 10 + 1, int(scale * ns),
                       int(rng.choice(streams))),
            "wait": ("wait",),
        }[what])  # fmt: skip
    return [*program, ("wait",)]


def changed(program, name, factor):
    """The program in which the steps of a name take another time."""
    index = {"host": 2, "launch": 3}
    return [
        (*step[: (i := index[step[0]])], round(step[i] * factor), *step[i + 1 :])
        if len(step) > 1 and step[1] == name
        else step
        for step in program
    ]


@pytest.mark.parametrize("factor", [0.25, 0.5, 3])
@pytest.mark.parametrize("name", ["work a", "kernel b"])
@pytest.mark.parametrize("seed", range(8))
def test_the_wall_time_is_that_of_the_program_with_other_times(seed, name, factor):
    program = random_program(seed)
    found = run(program).what_if({name: factor}).iloc[0]
    true = run(changed(program, name, factor)).info["wall_ns"]
    moved = abs(true - run(program).info["wall_ns"])
    assert found["wall_ns"] == pytest.approx(true, abs=4 * BACK + 0.03 * moved)
    assert found["wall_low_ns"] == found["wall_high_ns"]  # one stream: nothing overlaps


@pytest.mark.parametrize("seed", range(6))
def test_on_two_streams_the_program_is_within_the_bounds(seed):
    program = random_program(seed, streams=(7, 8))
    prof = run(program)
    found = prof.what_if({"kernel a": 0.5}).iloc[0]
    true = run(changed(program, "kernel a", 0.5)).info["wall_ns"]
    slack = 4 * BACK + 0.02 * abs(true - prof.info["wall_ns"])
    assert found["wall_low_ns"] - slack <= true <= found["wall_high_ns"] + slack


def test_without_its_waits_the_host_runs_on():
    program = [("launch", "k", 10, 1_000, 7), ("wait",), ("host", "work", 600)] * 3
    found = run(program).what_if({"waits": 0}).iloc[0]
    # Three launches and host steps, beside three kernels one after another.
    assert found["wall_ns"] == pytest.approx(10 + 3 * 1_000, abs=40)
    assert found["limit"] == "device"


def test_waits_that_stay_save_nothing():
    program = [("launch", "k", 10, 1_000, 7), ("wait",), ("host", "work", 600)] * 3
    assert run(program).what_if({"waits": 1})["saving_ns"].tolist() == [0]


def test_kernels_that_shared_the_device_may_get_faster():
    work = [kernel(10, 1_010, name="long", stream_id=7, correlation_id=1),
            kernel(20, 520, name="short", stream_id=8, correlation_id=2)]  # fmt: skip
    calls = [call(0, 10, correlation_id=1), call(10, 20, correlation_id=2)]
    found = profile([], work, calls, info=info(1_010)).what_if({"short": 0}).iloc[0]
    assert (found["saving_ns"], found["saving_low_ns"], found["saving_high_ns"]) == (0, 0, 500)


def test_statements_of_kernels_on_the_host_device_become_as_short_as_the_kernels():
    ops = [op(1, "layer", 0, 20, thread_id=1), line(2, 5, 25, 995, thread_id=9)]
    work = [kernel(20, 1_000, 1, name="k", correlation_id=1)]
    threads = [{"thread_id": 9, "name": stream_thread_name(0)}]
    prof = profile(ops, work, [call(10, 20, correlation_id=1)], info=info(1_000, threads=threads))
    assert prof.what_if({"layer": 0.5})["saving_ns"].item() == pytest.approx(500, abs=10)
    found = prof.what_if({"line 5": 0}).iloc[0]
    assert found["saving_ns"] is pd.NA
    assert (found["saving_low_ns"], found["saving_high_ns"]) == (0, 970)


def taking_turns(chains):
    """Return the times of the kernels of two streams, each of which fills the device."""
    now, spans = 20, ([], [])
    for number in range(max(map(len, chains))):
        for chain, found in zip(chains, spans, strict=True):
            if number < len(chain):
                found.append((now, now + chain[number]))
                now += chain[number]
    return spans


def sharing(chains):
    """Return the times of the kernels of two streams, which take twice as long at one time."""
    now, spans, left = 20, ([], []), [list(chain) for chain in chains]
    begun = [now, now]
    while any(left):
        at_work = [stream for stream in (0, 1) if left[stream]]
        step = min(left[stream][0] for stream in at_work)
        now += step * len(at_work)
        for stream in at_work:
            left[stream][0] -= step
            if not left[stream][0]:
                spans[stream].append((begun[stream], now))
                begun[stream] = now
                del left[stream][0]
    return spans


def contending(times, chains):
    """Return a profile of two chains of kernels that were launched at once."""
    rows = [
        (name, stream, span)
        for (name, stream), spans in zip((("kept", 7), ("changed", 8)), times(chains), strict=True)
        for span in spans
    ]
    work = [kernel(*span, name=name, stream_id=stream, correlation_id=number)
            for number, (name, stream, span) in enumerate(rows)]  # fmt: skip
    calls = [call(0, 10, correlation_id=number) for number in range(len(rows))]
    return profile([], work, calls, info=info(max(end for *_, (_, end) in rows)))


@pytest.mark.parametrize("factor", [0, 0.5])
@pytest.mark.parametrize("times", [taking_turns, sharing])
@pytest.mark.parametrize("seed", range(4))
def test_kernels_that_contend_may_free_all_the_time_of_the_others(seed, times, factor):
    rng = np.random.default_rng(seed)
    chains = [(2 * rng.integers(50, 200, rng.integers(8, 16))).tolist() for _ in range(2)]
    chains[1] = chains[1][: len(chains[0])]  # so that what is left is the limit
    found = contending(times, chains).what_if({"changed": factor}).iloc[0]
    changed = [round(ns * factor) for ns in chains[1]] if factor else []
    true = contending(times, [chains[0], changed]).info["wall_ns"]
    assert found["wall_low_ns"] <= true <= found["wall_high_ns"]


def test_kernels_that_take_turns_free_no_more_than_the_time_that_is_removed():
    for factor, most in ((0, 300), (0.5, 150), (1, 0), (2, -300)):
        prof = contending(taking_turns, [[100] * 3, [100] * 3])
        found = prof.what_if({"changed": factor}).iloc[0]
        assert found["saving_high_ns"] == most
        assert found["saving_ns"] == min(most, 100)


def test_a_kernel_that_waited_for_an_event_frees_only_the_rest_of_its_delay():
    """The copy is the limit, however short the kernels are that ran beside it."""
    waited = {"name": "stream_wait_event", "event_stream_id": 7, "event_correlation_id": 2}
    work = [tiny.activity("memcpy", 20, 500, correlation_id=1, stream_id=7),
            kernel(20, 450, correlation_id=3, stream_id=8, name="beside"),
            tiny.activity("synchronization", 7, 8, correlation_id=4, stream_id=9, **waited),
            kernel(600, 700, correlation_id=5, stream_id=9, name="after")]  # fmt: skip
    calls = [call(at, at + 1, correlation_id=at) for at in (1, 2, 3, 4, 5)]
    found = profile([], work, calls, info=info(700)).what_if({"beside": 0}).iloc[0]
    assert (found["saving_ns"], found["saving_high_ns"]) == (0, 100)


def test_changes_are_rows_and_all_of_them_is_the_last():
    program = random_program(3)
    both = {"work a": 0.5, "kernel *": 0}
    found = run(program).what_if(both)
    assert found["changed"].tolist() == ["work a", "kernel *", "all of them"]
    for name in ("kernel a", "kernel b", "kernel c"):
        program = changed(program, name, 0)
    program = changed(program, "work a", 0.5)
    assert found["wall_ns"].iloc[-1] == pytest.approx(run(program).info["wall_ns"], rel=0.02)
    assert found["limit"].iloc[-1] == "host"


def test_the_factor_0_is_the_saving_of_the_critical_path():
    prof = epprof_nb.testing.synthetic_profile(activities=2_000)
    for by, name in (("op", "{name}"), ("line", "{cell} line {line}")):
        path = prof.critical_path(by=by)
        for row in path[path["saving_ns"].notna()].head(8).to_dict("records"):
            found = prof.what_if({name.format(**row): 0}).iloc[0]
            assert found["saving_ns"] == row["saving_ns"], row
    assert prof.what_if({"In[3]": 1})["saving_high_ns"].tolist() == [0]


def test_only_one_side():
    ops = [line(1, 3, 0, 100), op(2, "step", 0, 100, 1)]
    calls = [call(0, 20, correlation_id=1, op_id=2),
             call(20, 500, correlation_id=2, op_id=2, name="cuStreamSynchronize")]  # fmt: skip
    ops[0] |= {"end_ns": 600, "duration_ns": 600}
    ops[1] |= {"end_ns": 600, "duration_ns": 600}
    prof = profile(ops, [kernel(20, 490, 2, correlation_id=1)], calls, info=info(600))
    on_device, on_host = (prof.what_if({"line 3": 0.5}, on=on) for on in ("device", "host"))
    assert on_device["saving_ns"].item() == pytest.approx(235, abs=2)
    assert on_host["saving_ns"].item() == pytest.approx(60, abs=12)  # of 120 ns of host time


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"forwrd": 0}, ValueError, "Similar names: 'forward'"),
        ({"line 999": 0}, ValueError, "nothing was recorded at 'line 999'"),
        ({"x" * 5_000: 0}, ValueError, "nothing in the profile is called 'x+…x+'"),
        ({"(no op)": 0}, ValueError, "in which no op was open"),
        ({}, ValueError, "changes is empty"),
        ({"forward": -1}, ValueError, "must be from 0"),
        ({"forward": float("nan")}, ValueError, "must be from 0"),
        ({"forward": 10**5_000}, ValueError, "must be from 0"),
        ({"forward": Decimal("sNaN")}, ValueError, "must be from 0"),
        ({"forward": "fast"}, TypeError, "must be a number"),
        ({"forward": 1j}, TypeError, "must be a number"),
        ({"forward": True}, TypeError, "must be a number"),
        ("forward", TypeError, "must be a mapping of names to factors"),
        (["forward"], TypeError, "must be a mapping of names to factors, .* not list"),
        ({3: 0.5}, TypeError, "a name must be text, not 3"),
        ({"waits": 0.5}, ValueError, "waits can only be removed"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(changes, error, message):
    prof = epprof_nb.testing.synthetic_profile(activities=100)
    with pytest.raises(error, match=message):
        prof.what_if(changes)


def test_factors_of_the_same_work_may_multiply_to_a_million():
    prof = profile([op(1, "a", 0, 60), op(2, "b", 60, 100)], info=info(100))
    assert prof.what_if({"a": 1e6, "b": 1e6})["wall_ns"].iloc[-1] == 100_000_000
    assert prof.what_if({"a": 1e6, "*": 1})["wall_ns"].iloc[-1] == 60_000_040
    with pytest.raises(ValueError, match=r"of 'a', '\*' multiply to 2,000,000.*is 1,000,000 for"):
        prof.what_if({"a": 1e6, "b": 0.5, "*": 2})
    with pytest.raises(ValueError, match=r"and 45 others multiply to 1e\+100"):
        prof.what_if({"*" * (i + 1): 1e6 for i in range(50)})
    with pytest.raises(ValueError, match=r"to 1,000,000, not 1,000,001;"):
        prof.what_if({"a": 1_000_001})


def test_a_factor_whose_time_has_more_than_64_bits_is_refused():
    hour = 3_600 * 10**9
    prof = profile([op(1, "a", 0, hour)], [kernel(hour - 9, hour)], info=info(hour))
    with pytest.raises(ValueError, match=r"to 320,255, not 1,000,000, as times .* 3,600 s long"):
        prof.what_if({"a": 1e6})
    assert prof.what_if({"a": 320_255})["wall_ns"].item() > 2**59


def test_work_before_the_profile_saves_at_most_the_profile():
    calls = [call(-500, -400, correlation_id=1, op_id=1), call(-400, 50, correlation_id=2, op_id=1)]
    found = profile([op(1, "a", 0, 90)], [], calls, info=info(100)).what_if({"a": 0})
    assert (found["wall_ns"].item(), found["wall_low_ns"].item()) == (0, 0)


@pytest.mark.parametrize("half", [Fraction(1, 2), Decimal("0.5"), np.float32(0.5), np.float16(0.5)])
def test_a_factor_is_any_real_number(half):
    prof = profile([op(1, "a", 0, 60), op(2, "rest", 60, 100)], info=info(100))
    assert prof.what_if({"a": half})["saving_ns"].item() == 30


def test_a_line_that_only_samples_have_is_refused_and_its_statement_named():
    """No op or call is at line 5 of `parse`, so the path does not know when it ran."""
    rows, (stack,) = stack_rows("In[1]:2 In[1]:parse:5")
    prof = with_stacks(profile([line(1, 2, 0, 60, cell="In[1]")], info=info(100)), rows)
    prof.tables["host_samples"] = tiny.table(
        HOST_SAMPLES, [{"start_ns": 0, "stack_id": stack, "interval_ns": 60, "thread_id": 1}]
    )
    with pytest.raises(ValueError, match=r"from samples of the host.*calls it: 'In\[1\] line 2'\."):
        prof.what_if({"In[1] line 5": 0})
    assert prof.what_if({"In[1] line 2": 0})["saving_ns"].item() == 60


def test_a_function_is_named_as_in_findings():
    text = (
        "def f(x):\n    y = x\n    return y\nclass A:\n    def f(self): return 1\nf(2)\nA().f()\n"
    )
    ops = [line(1, 6, 0, 50), line(2, 2, 5, 20, 1), line(3, 3, 20, 40, 1),
           line(4, 7, 50, 100), line(5, 5, 55, 65, 4)]  # fmt: skip
    prof = profile(ops, info=info(100), sources={"In[1]": text})
    found = prof.what_if({"f": 0, "A.f": 0.5, "f()": 0})
    assert found["saving_ns"].tolist()[:3] == [35, 5, 35]
    with pytest.raises(ValueError, match=r"nothing in the profile is called 'B\.f'"):
        prof.what_if({"B.f": 0})


@pytest.mark.parametrize(("end", "named"), [(60, True), (100, False)])
def test_a_function_that_only_samples_have_is_refused_and_a_part_around_it_named(end, named):
    rows, (stack,) = stack_rows("In[1]:2 a.py:parse:5")
    prof = with_stacks(profile([line(1, 2, 0, end, cell="In[1]")], info=info(100)), rows)
    prof.tables["host_samples"] = tiny.table(
        HOST_SAMPLES, [{"start_ns": 0, "stack_id": stack, "interval_ns": end, "thread_id": 1}]
    )
    with pytest.raises(ValueError, match=r"'parse' is known only from samples") as refused:
        prof.what_if({"parse": 0})
    assert ("'In[1] line 2'" in str(refused.value)) == named
    assert "Define it in the profiled cell or script" in str(refused.value)


def test_a_side_that_is_none_is_refused():
    prof = epprof_nb.testing.synthetic_profile(activities=100)
    with pytest.raises(ValueError, match="on must be"):
        prof.what_if({"forward": 0}, on="gpu")


def test_an_empty_profile_has_no_names():
    with pytest.raises(ValueError, match="nothing in the profile"):
        profile().what_if({"forward": 0})
    assert profile().what_if({"waits": 0})["saving_ns"].tolist() == [0]


@pytest.mark.parametrize("name", ["waits", "copies", "line 3"])
def test_an_op_comes_before_what_its_name_stands_for(name):
    prof = profile([op(1, name, 0, 60), op(2, "rest", 60, 100)], info=info(100))
    assert prof.what_if({name: 0.5})["saving_ns"].item() == 30


def test_an_op_without_a_name():
    prof = profile([op(1, "(unnamed)", 0, 60), op(2, "rest", 60, 100)], info=info(100))
    assert prof.what_if({"(unnamed)": 0})["saving_ns"].item() == 60
    with pytest.raises(ValueError, match="nothing in the profile is called ''"):
        prof.what_if({"": 0})


def test_a_class_of_modules_with_their_backward_passes():
    ops = [framework(1, "net", 0, 50, args={"class": "Net"}),
           framework(2, "net.a", 0, 20, 1, args={"class": "Linear"}),
           framework(3, "net.b", 20, 50, 1, args={"class": "Linear"}),
           framework(4, "net.a", 50, 90, op_type="backward"),
           op(5, "net.a", 90, 100)]  # fmt: skip
    prof = profile(ops, info=info(100))
    found = prof.what_if({"Linear": 0, "Lin*": 0.5, "Net": 0}).set_index("changed")["saving_ns"]
    assert found[["Linear", "Lin*", "Net"]].tolist() == [90, 45, 50]
    with pytest.raises(ValueError, match="nothing in the profile is called 'Conv2d'"):
        prof.what_if({"Conv2d": 0})


@pytest.mark.parametrize(
    ("name", "saved"),
    [("mm[ab]*", 800), ("mm?_[12]", 300), ("mm[ab]", 500), ("*[ab]", 500), ("mm*", 1_000),
     ("mm[!a]_?", 200)],
)  # fmt: skip
def test_patterns_also_stand_for_brackets_of_names(name, saved):
    names = {"mma_1": 100, "mmb_2": 200, "mm[ab]": 500, "mmd_3x": 200}
    starts = [sum([*names.values()][:i]) for i in range(len(names))]
    ops = [
        op(i, each, at, at + ns)
        for i, (at, (each, ns)) in enumerate(zip(starts, names.items(), strict=True), 1)
    ]
    assert profile(ops, info=info(1_000)).what_if({name: 0})["saving_ns"].item() == saved


@pytest.mark.parametrize("row", range(4))
def test_a_delay_at_the_end_of_an_op_counts_also_if_a_statement_ends_at_once(row):
    """As the statement with ``return`` in a ``with`` block does."""
    ops = [
        op(1, "In[1]", 0, 100, op_type="cell"),
        op(2, "outer", 10, 90, 1),
        op(3, "inner", 20, 90, 2),
        op(4, "return", 30, 90, 3, op_type="line"),
    ]
    replay = Replay(ProfileIndex(profile(ops, info=info(100))), "launch")
    added_ns = np.zeros(4, np.int64)
    before = replay.length([], contention=False, added_ns=added_ns)[0]
    added_ns[row] = 7
    assert replay.length([], contention=False, added_ns=added_ns)[0] == before + 7


def recorded(*rows, load=None, of_ops=None, **costs):
    """A profile of lines of a cell that knows what recording them took."""
    rows = [op(99, "In[1]", 0, 100_000, op_type="cell"), *rows]
    info = {"wall_ns": 100_000, "thread_id": 1, "recording_costs": costs, "load": load or {}}
    return profile(rows, info=info | {"statement_costs": of_ops or {}})


@pytest.fixture
def _plain_costs(monkeypatch):
    monkeypatch.setattr(profiler_costs, "_COLD_NS", {0: 0})


@pytest.mark.usefixtures("_plain_costs")
def test_what_recording_took_is_no_saving():
    rows = line(1, 1, 0, 40_000, 99, count=30), line(2, 2, 40_000, 100_000, 99, count=10)
    prof = recorded(*rows, statements=40_000)  # 30,000 of the first line
    found = prof.what_if({"line 1": 0}).iloc[0]
    assert found["saving_ns"] == pytest.approx(10_000, rel=0.01)
    assert found["wall_ns"] == 60_000 - found["saving_ns"]
    assert found["wall_low_ns"] == pytest.approx(60_000 - 1.35 * 10_000 - 900, rel=0.01)
    assert found["wall_high_ns"] == pytest.approx(60_000 - 0.65 * 10_000, rel=0.01)
    assert found["saving_low_ns"] == pytest.approx(400, abs=10)
    assert found["saving_high_ns"] == pytest.approx(40_000 - 0.65 * 30_000, rel=0.01)
    half = prof.what_if({"line 1": 0.5}).iloc[0]
    assert half["saving_ns"] == pytest.approx(5_000, rel=0.01)


def test_fewer_factors_do_not_change_the_sum_of_the_times():
    factors, ns = np.linspace(0, 1, 1_000) ** 9, np.arange(1_000)[::-1] * 1_000.0
    values, code = profiler_costs.few_values(factors, 10, ns)
    found = values[code]
    assert len(np.unique(found)) == len(values) == 10
    assert (np.diff(found) >= 0).all()
    assert found @ ns == pytest.approx(factors @ ns, rel=1e-4)


@pytest.mark.usefixtures("_plain_costs")
def test_what_recording_took_is_where_its_sample_was():
    rows = line(1, 1, 0, 40_000, 99, count=50), line(2, 2, 40_000, 100_000, 99, count=50)
    prof = recorded(*rows, statements=40_000, of_ops={"2": 700, "77": 5_000})
    found = prof.what_if({"line 1": 0, "line 2": 0})["saving_ns"].tolist()
    assert found == [40_000, pytest.approx(20_000, rel=0.01), pytest.approx(60_000, rel=0.01)]


@pytest.mark.usefixtures("_plain_costs")
def test_what_markers_took_before_an_op_is_in_the_op_around_it():
    rows = line(1, 1, 0, 100_000, 99), line(2, 2, 50_000, 60_000, 1, count=99)
    found = recorded(*rows, statements=50_000).what_if({"line 1": 0, "line 2": 0})
    assert found["saving_ns"][0] == pytest.approx(50_000, rel=0.01)
    assert found["saving_ns"][1] == pytest.approx(100, abs=20)


@pytest.mark.usefixtures("_plain_costs")
def test_other_processes_delay_recording_or_the_code():
    rows = [line(1, 1, 0, 100_000, 99)]
    load = {"own_cores": 0.5, "waiting": 0.5, "other_cores": 2.0}
    found = recorded(*rows, statements=20_000, load=load).what_if({"line 1": 0}).iloc[0]
    assert found["saving_ns"] == pytest.approx(60_000, rel=0.01)
    assert found["saving_high_ns"] == pytest.approx(87_000, rel=0.01)


def test_recording_that_was_not_timed_is_left_in():
    found = recorded(line(1, 1, 0, 40_000, 99, count=30)).what_if({"line 1": 0}).iloc[0]
    assert found["saving_low_ns"] == found["saving_ns"] == 40_000


@pytest.mark.usefixtures("_plain_costs")
def test_what_recording_took_of_suspended_ops_is_spread_over_the_line_around_them():
    rows = [line(1, 1, 0, 60_000, 99), line(3, 3, 60_000, 100_000, 99)]
    suspended = {"suspended_ns": 40_000, "duration_ns": 5_000}
    rows.insert(1, line(2, 2, 10_000, 55_000, 1, **suspended))
    prof = recorded(*rows, statements=30_000, of_ops={"1": 900})
    found = prof.what_if({"line 1": 0})["saving_ns"].tolist()
    assert found == [pytest.approx(30_000, rel=0.01)]


def test_what_recording_took_of_a_run_is_no_saving_of_its_nodes():
    """A run of 1,000 ns took 11,000: 5,000 around its op, and in it, as much for each node."""
    run = {"category": "session", "op_type": "run", "session": 1}
    node = {"category": "node", "session": 1}
    rows = [line(1, 1, 0, 100_000, 99),
            op(2, "run", 10_000, 16_000, 1, args={"call_ns": 11_000, "unprofiled_ns": 1_000,
                                                  "shapes": 1}, **run),
            op(3, "a", 11_000, 13_300, 2, op_type="MatMul", **node),
            op(4, "b", 13_300, 15_350, 2, op_type="Tanh", **node)]  # fmt: skip
    found = recorded(*rows, ops=1).what_if({"MatMul": 0, "Tanh": 0, "run": 0})
    # Three quarters of the run are in its nodes, of which one took 250 ns more than the other.
    assert found["saving_ns"].tolist()[:2] == [pytest.approx(500, abs=9), pytest.approx(250, abs=9)]
    assert found["saving_ns"][2] == pytest.approx(1_000, abs=9)
    assert (found["saving_low_ns"] < found["saving_ns"]).all()
    assert (found["saving_high_ns"] > found["saving_ns"]).all()
