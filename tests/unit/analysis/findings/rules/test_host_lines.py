"""Findings on work of the host: hot lines, loops value by value, and imports."""

import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.critical_path import profiler_costs
from epprof_nb.analysis.steps.iterations import iterations
from epprof_nb.data.profiles_without_gpu import OF_JOB
from epprof_nb.data.schema import HOST_SAMPLES, THREAD_WAITS
from tests.helpers.planted import MS, US, info, of_kind
from tests.helpers.tiny import call, kernel, line, op, profile, table
from tests.helpers.training import framework

SOURCE = "import torch\nfor item in items:\n    y = decode(item)\n    z = store(y)\n"


def on_the_host(decoding, storing, rounds=5, inside=(), **more):
    """A loop in line 2 with two lines; `inside` are ops of each round inside of line 3."""
    ops, now = [line(1, 2, 0, rounds * (decoding + storing))], 0
    for i in range(rounds):
        first = 100 * (i + 1)
        ops.append(line(first, 3, now, now + decoding, 1))
        ops += [make(first + 2 + j, now, first) for j, make in enumerate(inside)]
        ops.append(line(first + 1, 4, now + decoding, now + decoding + storing, 1))
        now += decoding + storing
    return profile(ops, info=info(now, **more), sources={"In[1]": SOURCE})


def test_the_line_with_most_host_time_is_named():
    (found,) = of_kind(on_the_host(30 * MS, 10 * MS), "hot line")
    assert found.text == (
        "Line 3 (`y = decode(item)`) accounts for 75 % of the wall time (150 ms in 5 executions)."
    )
    assert (found.gain_ns, found.low_ns) == (150 * MS, 0)
    prof = on_the_host(30 * MS, 10 * MS)
    assert set(prof.evidence(1)["line"]) == {3}


def test_no_line_is_hot_if_profiling_added_all_of_the_time():
    assert not of_kind(on_the_host(30 * MS, 10 * MS, added_ns={"total": 2**62}), "hot line")


def test_a_line_is_without_its_share_of_what_profiling_added():
    prof = on_the_host(30 * MS, 10 * MS, added_ns={"total": 40 * MS, "error": MS})
    (found,) = of_kind(prof, "hot line")
    assert found.text.endswith(
        "accounts for 75 % of the wall time (120 ms in 5 executions, without 30.0 ms that "
        "profiling added)."
    )
    assert found.gain_ns == 120 * MS


def test_a_line_tells_where_the_rest_of_the_wall_time_went():
    """Recording took 180 of 200 ms, so that the line has most of 20 ms."""
    prof = on_the_host(30 * MS, 10 * MS, added_ns={"total": 180 * MS, "error": MS})
    (found,) = of_kind(prof, "hot line")
    assert found.text.endswith(
        "accounts for 75 % of the wall time (15.0 ms in 5 executions, without 135 ms that "
        "profiling added). Profiling added 180 ms to the wall time of 200 ms, which this "
        "leaves out."
    )
    assert found.gain_ns == 15 * MS


def test_a_line_is_without_what_recording_it_took(monkeypatch):
    """Each of 11 statements took 5 ms; a loop takes those inside of it longer, too."""
    monkeypatch.setattr(profiler_costs, "_COLD_NS", {0: 0})
    costs = {"thread_id": 1, "recording_costs": {"statements": 55 * MS}}
    (found,) = of_kind(on_the_host(30 * MS, 10 * MS, **costs), "hot line")
    assert "86 % of the wall time (125 ms in 5 executions, without 25.0 ms that" in found.text
    ops = [line(1, 2, 0, 90 * MS, name="for"), line(2, 2, 0, 80 * MS, 1, name="y", count=2_000)]
    costs["recording_costs"] = {"statements": 20 * MS}
    source = {"In[1]": "import torch\nfor item in items: y = decode(item)\nz = store(y)\n"}
    prof = profile(
        [*ops, line(3, 3, 90 * MS, 99 * MS)], info=info(100 * MS, **costs), sources=source
    )
    (found,) = of_kind(prof, "hot line")
    assert "88 % of the wall time (70.0 ms in 2,000 rounds, 35.0 µs each, without" in found.text


def test_statements_in_one_line_are_counted_once():
    """``with`` and the statement in it run five times."""
    ops = [line(1, 2, 0, 100 * MS)]
    for i in range(5):
        start = 20 * MS * i
        ops.append(line(10 + 2 * i, 3, start, start + 15 * MS, 1, name="with lock: work()"))
        ops.append(line(11 + 2 * i, 3, start + MS, start + 14 * MS, 10 + 2 * i, name="work()"))
        ops.append(line(50 + i, 4, start + 15 * MS, start + 20 * MS, 1))
    prof = profile(ops, info=info(100 * MS), sources={"In[1]": SOURCE})
    (found,) = of_kind(prof, "hot line")
    assert "75 % of the wall time (75.0 ms in 5 executions)" in found.text


def test_a_recursive_line_is_no_loop():
    """A function calls itself in its only line, 2,000 times in all."""
    ops = [line(1, 2, 0, 60 * MS)]
    for i in range(40):
        start, parent = 1_500 * US * i, 1
        for depth in range(50):
            number = 100 + 50 * i + depth
            begun = start + 10 * US * depth
            end = start + 1_500 * US - 10 * US * depth
            ops.append(line(number, 3, begun, end, parent))
            parent = number
    prof = profile(ops, info=info(60 * MS), sources={"In[1]": SOURCE})
    (found,) = of_kind(prof, "hot line")
    assert "100 % of the wall time (60.0 ms in 2,000 executions)" in found.text
    assert found.remedy.startswith("Make this work faster")


def test_recursive_calls_are_no_iterations():
    calls = [line(10 + i, 3, MS * i, MS * (i + 1), 2) for i in range(20)]
    found = {}
    for number in (3, 4):  # the line of the calls' own statement: another one is a loop
        ops = [line(1, 2, 0, 20 * MS), line(2, number, 0, 20 * MS, 1), *calls]
        prof = profile(ops, info=info(20 * MS), sources={"In[1]": SOURCE})
        found[number] = len(iterations(ProfileIndex(prof)).start)
    assert found == {3: 0, 4: 20}


def test_lines_of_several_threads_have_no_share_of_the_wall_time():
    ops = [line(1, 2, 0, MS), *[
        line(10 + i, 3, 0, 90 * MS) | {"thread_id": 5 + i} for i in range(3)
    ]]  # fmt: skip
    prof = profile(ops, info=info(100 * MS), sources={"In[1]": SOURCE})
    (found,) = of_kind(prof, "hot line")
    assert found.text == (
        "Line 3 (`y = decode(item)`) took 270 ms in 3 executions, in 3 threads together."
    )
    assert found.gain_ns == 100 * MS  # at most


@pytest.mark.parametrize(
    ("threads", "took"),
    [
        (1, "accounts for > 99 % of the wall time (100 ms in 1 execution)"),
        (2, "took 200 ms in 2 executions, in 2 threads together"),
    ],
)
def test_the_definition_of_a_function_is_no_execution_on_another_thread(threads, took):
    """The cell's thread defines a function in one line, and others run it."""
    text = "def h(): time.sleep(.1)"
    ops = [
        line(1, 1, 0, US) | {"name": text, "thread_id": 1},
        line(2, 2, US, 2 * US) | {"name": "start()", "thread_id": 1},
        *[
            line(10 + i, 1, 2 * US, 100 * MS) | {"name": "time.sleep(.1)", "thread_id": 5 + i}
            for i in range(threads)
        ],
    ]
    prof = profile(ops, info=info(100 * MS), sources={"In[1]": f"{text}\nstart()\n"})
    (found,) = of_kind(prof, "hot line")
    assert found.text == f"Line 1 (`{text}`) {took}."


@pytest.mark.parametrize(
    ("thread", "function", "named"),
    [(2, "Condition.wait", 4), (2, "time.sleep", 3), (1, "Condition.wait", 4)],
)
def test_waits_for_threads_are_no_time_of_a_line_while_others_work(thread, function, named):
    """A thread waits in line 3 while another one works in line 4: one of them is the cell's."""
    ops = [
        line(1, 2, 0, MS), line(2, 3, MS, 99 * MS) | {"thread_id": thread},
        line(3, 4, MS, 70 * MS) | {"thread_id": 3 - thread},
    ]  # fmt: skip
    prof = profile(ops, info=info(100 * MS, thread_id=1), sources={"In[1]": SOURCE})
    prof.tables["thread_waits"] = table(THREAD_WAITS, [
        {"start_ns": i * MS, "end_ns": (i + 9) * MS, "thread_id": thread, "function": function}
        for i in range(1, 90, 10)
    ])  # fmt: skip
    (found,) = of_kind(prof, "hot line")
    assert found.text.startswith(f"Line {named} ")


def waiting(function, other=2, *, ran=(), waited=90, named=True, **more):
    """Line 4 takes 100 of 110 ms and waits in most of it; `ran` are ops of the other thread."""
    ops = [line(1, 3, 0, 10 * MS), line(2, 4, 10 * MS, 110 * MS), *ran]
    prof = profile(ops, info=info(110 * MS, thread_id=1, **more), sources={"In[1]": SOURCE})
    prof.info["threads"] = [{"thread_id": 2, "name": "reader"}] if named else []
    prof.tables["thread_waits"] = table(THREAD_WAITS, [
        {"start_ns": 11 * MS, "end_ns": (11 + waited) * MS, "thread_id": 1, "function": function,
         "other_thread_id": other}
    ])  # fmt: skip
    (found,) = of_kind(prof, "hot line")
    return found


@pytest.mark.parametrize(("function", "other", "how", "remedy"), [
    ("Thread.join", 2, "for `reader`", "This code waits for a thread"),
    ("Condition.wait", 3, "for thread 3", "This code waits for a thread"),
    ("Condition.wait", -1, "for another thread", "This code waits for a thread"),
    ("Lock.acquire", 2, "for a lock of `reader`", "This code waits for a lock"),
    ("RLock.acquire", -1, "for a lock", "This code waits for a lock"),
])  # fmt: skip
def test_a_line_that_waits_says_for_what(function, other, how, remedy):
    found = waiting(function, other)
    assert found.text == (
        "Line 4 (`z = store(y)`) accounts for 91 % of the wall time (100 ms in 1 execution), "
        f"mostly to wait {how}."
    )
    assert found.remedy.startswith(remedy)
    assert "faster" not in waiting(function, other, waited=90).remedy.partition(".")[0]
    assert waiting(function, other, waited=40).remedy.startswith("Make this work faster")


def test_a_line_that_sleeps_does_no_work():
    found = waiting("time.sleep", -1)
    assert found.text.endswith(", mostly in `time.sleep`.")
    assert found.remedy.startswith("This code sleeps")


def test_the_only_thread_of_a_program_waits_for_no_other():
    found = waiting("Condition.wait", -1, named=False)
    assert found.text.endswith(", mostly in `Condition.wait`.")
    assert "no other thread" in found.remedy
    lock = waiting("Lock.acquire", -1, named=False)
    assert lock.text.endswith(", mostly to wait for a lock.")


@pytest.mark.parametrize(("waited", "is_cut"), [(90, False), (40, True)])
def test_a_wait_takes_as_long_beside_other_processes(waited, is_cut):
    load = {"cores": 2, "own_cores": 0.25, "other_cores": 1.71, "waiting": 0.75}
    quiet = waiting("time.sleep", -1, waited=waited)
    busy = waiting("time.sleep", -1, waited=waited, load=load)
    assert busy.gain_ns == (quiet.gain_ns // 4 if is_cut else quiet.gain_ns) > 0


def test_a_waiting_line_tells_what_the_thread_ran():
    ran = [line(10 + i, 2 + i, 20 * MS * i, 20 * MS * (i + 1)) | {"thread_id": 2} for i in (1, 2)]
    ran[0]["end_ns"] -= 5 * MS
    found = waiting("Thread.join", ran=ran)
    assert found.text.endswith(" for `reader`, which ran line 4 (`z = store(y)`).")


@pytest.mark.parametrize("used", [0.1, 0.9])
def test_a_line_that_waits_between_recorded_waits_is_not_hot(used):
    ops = [line(1, 3, 0, 10 * MS), line(2, 4, 10 * MS, 110 * MS)]
    load = info(110 * MS, load={"own_cores": 1.0})
    prof = profile(ops, info=load, sources={"In[1]": SOURCE})
    prof.tables["host_samples"] = table(HOST_SAMPLES, [
        {"start_ns": i * MS, "interval_ns": MS, "thread_id": 1, "stack_id": -1,
         "processor_ns": int(i * MS * used), "core_wait_ns": 0}
        for i in range(110)
    ])  # fmt: skip
    (found,) = of_kind(prof, "hot line")
    assert found.text.endswith(", mostly to wait while other threads ran.") == (used == 0.1)


def test_the_statement_in_which_the_profile_began_is_none_of_its_lines():
    ops = [line(1, 2, -900 * MS, 100 * MS), line(2, 3, 0, 30 * MS, 1), line(3, 4, 30 * MS, 99 * MS)]
    prof = profile(ops, info=info(100 * MS), sources={"In[1]": SOURCE})
    (found,) = of_kind(prof, "hot line")
    assert found.text.startswith("Line 4 (`z = store(y)`) accounts for 69 %")


def test_the_time_of_ops_inside_of_a_line_is_not_its_own():
    def module(op_id, start, parent):
        return framework(op_id, "model", start, start + 25 * MS, parent, "module")

    assert not of_kind(on_the_host(30 * MS, 10 * MS, inside=[module]), "hot line")


@pytest.mark.parametrize("more", [{"gpu": True}, {"even": True}])
def test_device_work_and_even_lines_have_no_host_line(more):
    if "even" in more:
        prof = on_the_host(10 * MS, 10 * MS, rounds=1)
        lines = [line(10 + i, 3 + i, 10 * MS * i, 10 * MS * (i + 1)) for i in range(5)]
        prof = profile(lines, info=info(50 * MS), sources={"In[1]": SOURCE})
    else:
        ops = [line(1, 3, 0, 90 * MS), line(2, 4, 90 * MS, 100 * MS)]
        prof = profile(ops, [kernel(5 * MS, 99 * MS, 1, correlation_id=1)],
                       [call(0, MS, correlation_id=1, op_id=1)], info=info(100 * MS))  # fmt: skip
    assert not [f for f in of_kind(prof, "hot line") if "wall time" in f.text]


@pytest.mark.parametrize(("load", "waited"), [
    ({"own_cores": 0.05}, True),
    ({"own_cores": 0.05, "waiting": 0.1}, True),
    ({"own_cores": 0.05, "waiting": 0.95}, False),  # it waited for a core
    ({"own_cores": 0.4}, False),  # the other line may be what slept
    ({"own_cores": 1.0}, False),
    ({}, False),
    ({"own_cores": "a"}, False),
])  # fmt: skip
def test_a_line_that_waits_for_other_processes_is_no_work(load, waited):
    (found,) = of_kind(on_the_host(30 * MS, 10 * MS, load=load), "hot line")
    assert ("no thread of this process ran" in found.text) == waited
    assert ("This code waits" in found.remedy) == waited


def test_the_process_of_a_job_is_not_told_to_record_what_the_job_has():
    prof = on_the_host(30 * MS, 10 * MS, load={"own_cores": 0.05})
    (alone,) = of_kind(prof, "hot line")
    of_job = on_the_host(30 * MS, 10 * MS, load={"own_cores": 0.05})
    of_job.info[OF_JOB] = True
    (found,) = of_kind(of_job, "hot line")
    assert "`--cluster` records" in alone.remedy
    assert "`--cluster` records" not in found.remedy
    assert found.remedy.endswith("The other processes of the job have findings of their own.")


def test_a_loop_value_by_value_has_a_remedy_of_its_own():
    """Lines that run often share a row."""
    ops = [line(1, 2, 0, 30 * MS), line(2, 3, 0, 29 * MS, 1, count=20_000)]
    prof = profile(ops, info=info(31 * MS), sources={"In[1]": SOURCE})
    (found,) = of_kind(prof, "hot line")
    assert "29.0 ms in 20,000 executions, 1.45 µs each" in found.text
    assert "whole arrays" in found.remedy
    # Few executions, or long ones, are no such loop.
    for count, length in ((20, 29 * MS), (2_000, 2_900 * MS)):
        ops = [line(1, 2, 0, length + MS), line(2, 3, 0, length, 1, count=count)]
        prof = profile(ops, info=info(length + MS), sources={"In[1]": SOURCE})
        (found,) = of_kind(prof, "hot line")
        assert ("whole arrays" in found.remedy) == (length < MS * 30 and count > 1_000)


def test_the_lines_of_a_loop_value_by_value_are_one_loop():
    ops = [line(1, 2, 0, 40 * MS), line(2, 3, 0, 10 * MS, 1, count=20_000),
           line(3, 4, 0, 8 * MS, 1, count=9_000), line(4, 5, 40 * MS, 42 * MS)]  # fmt: skip
    prof = profile(ops, info=info(42 * MS), sources={"In[1]": SOURCE})
    (found,) = of_kind(prof, "hot line")
    assert found.text == (
        "Line 2 (`for item in items:`) accounts for 95 % of the wall time (40.0 ms in 20,000 "
        "rounds, 2.00 µs each)."
    )
    assert (found.gain_ns, "whole arrays" in found.remedy) == (40 * MS, True)


def script(*, importing, training, **more):
    """A script that imports, and then launches work of 1 ms every 2 ms."""
    ops = [line(1, 1, 0, importing, name="import torch"),
           line(2, 1, importing // 4, importing // 2, 1, name="from torch import nn")]  # fmt: skip
    work, calls = [], []
    for i in range(training // (2 * MS)):
        t = importing + 2 * MS * i
        ops.append(line(10 + i, 4, t, t + 2 * MS))
        calls.append(call(t + MS, t + MS + 10 * US, correlation_id=i + 1, op_id=10 + i))
        work.append(kernel(t + MS + 10 * US, t + 2 * MS, 10 + i, correlation_id=i + 1,
                           thread_id=1))  # fmt: skip
    return profile(ops, work, calls, info=info(importing + training, **more),
                   sources={"In[1]": SOURCE})  # fmt: skip


def named(prof):
    return [(name, text) for name, text in zip(prof.insights()["kind"], prof.insights()["text"],
                                               strict=True)]  # fmt: skip


def test_imports_are_a_cause_of_their_own_and_come_last():
    kinds = [kind for kind, _ in named(script(importing=900 * MS, training=800 * MS))]
    assert kinds[-1] == "import"
    assert len(kinds) > 1
    (found,) = of_kind(script(importing=900 * MS, training=800 * MS), "import")
    assert found.text == "Line 1 (`import torch`) took 900 ms."
    assert found.gain_ns == 900 * MS
    assert not [text for _, text in named(script(importing=900 * MS, training=800 * MS))
                if "line 1" in text]  # fmt: skip


def test_a_script_that_hardly_does_anything_else_has_imports_first():
    assert named(script(importing=900 * MS, training=40 * MS))[0][0] == "import"


def test_the_remedy_is_for_a_cell_or_for_a_script():
    (of_cell,) = of_kind(script(importing=900 * MS, training=40 * MS, cell="In[1]"), "import")
    assert "earlier cell" in of_cell.remedy
    (of_script,) = of_kind(
        script(importing=900 * MS, training=40 * MS, cell="a.py", script="a.py"), "import"
    )
    assert "-X importtime" in of_script.remedy


def test_an_import_is_no_hot_line_as_well():
    ops = [line(1, 1, 0, 90 * MS, name="import torch"),
           line(2, 7, 10 * MS, 80 * MS, 1, cell="module.py", name="x = f()"),
           line(3, 3, 90 * MS, 95 * MS)]  # fmt: skip
    prof = profile(ops, info=info(100 * MS, cell="In[1]"), sources={"In[1]": SOURCE})
    assert [kind for kind, _ in named(prof)] == ["import"]


@pytest.mark.parametrize("name", ["important = 3", "imports()", "from_file = importer(x)", "yield"])
def test_other_statements_are_no_imports(name):
    ops = [line(1, 1, 0, 90 * MS, name=name), op(2, "x", 90 * MS, 95 * MS)]
    assert not of_kind(profile(ops, info=info(100 * MS)), "import")
