"""Findings on the function with most samples of the host."""

import pytest

from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.critical_path import profiler_costs
from epprof_nb.analysis.findings.finding import launcher_name
from epprof_nb.data.schema import HOST_SAMPLES
from tests.helpers import tiny
from tests.helpers.planted import MS, info, of_kind
from tests.helpers.tiny import call, kernel, line, op, profile
from tests.helpers.training import framework
from tests.helpers.walked_stacks import stack_rows, with_stacks

STACKS = {
    "parse": "In[1]:2 In[1]:parse:5",
    "parse, in a library": "In[1]:2 In[1]:parse:6 lib/json.py:loads:9",
    "parse, for a process": "In[1]:2 In[1]:parse:6 lib/subprocess.py:Popen._try_wait:9",
    "store": "In[1]:3 data.py:store:12",
    "cell": "In[1]:3",
    "library": "lib/run.py:run:1",
}
SOURCE = "items = load()\nrows = [parse(item) for item in items]\nstore(rows)\ndef parse(text):\n"


def sampled(counts, *, gpu=False, wall=100 * MS, ops=(), waits=()):
    """A profile with this number of samples of each stack, all of one interval."""
    rows, ids = stack_rows(*STACKS.values())
    work = [kernel(0, MS, 1, correlation_id=1, thread_id=1)] if gpu else []
    calls = [call(0, MS // 2, correlation_id=1, op_id=1)] if gpu else list(waits)
    made = profile([line(1, 2, 0, wall), *ops], work, calls, info=info(wall, cell="In[1]"),
                   sources={"In[1]": SOURCE})  # fmt: skip
    made = with_stacks(made, rows)
    pairs = zip(STACKS, ids, strict=True)
    stacks = [stack for name, stack in pairs for _ in range(counts.get(name, 0))]
    step = wall // max(len(stacks), 1)
    made.tables["host_samples"] = tiny.table(
        HOST_SAMPLES,
        [{"start_ns": i * step, "stack_id": stack, "interval_ns": step, "thread_id": 1}
         for i, stack in enumerate(stacks)],
    )  # fmt: skip
    return made


def of_script(prof):
    del prof.info["cell"]
    return prof


def test_the_function_with_most_samples_is_named():
    found = of_kind(sampled({"parse": 40, "parse, in a library": 20, "store": 40}), "hot function")
    (found,) = found
    assert found.text.startswith(
        "`parse` (In[1]:5) took 60 % of the host's time (60.0 ms, in 60 samples)"
    )
    assert found.gain_ns == 60 * MS
    assert (found.low_ns, found.high_ns) == (0, 60 * MS)  # at most
    prof = sampled({"parse": 60, "store": 40})
    assert prof.insights().iloc[0][["cell", "line"]].tolist() == ["In[1]", 5]


def test_the_time_is_without_its_share_of_what_profiling_added():
    prof = sampled({"parse": 60, "store": 40})
    prof.info["added_ns"] = {"total": 20 * MS, "error": MS}
    (found,) = of_kind(prof, "hot function")
    assert "60 % (48 to 71 %) of the host's time (48.0 ms, in 60 samples, without" in found.text
    assert ", without 12.0 ms that profiling added)" in found.text
    assert found.gain_ns == 48 * MS


def test_the_time_is_without_what_recording_its_statements_took(monkeypatch):
    """Line 5 of `parse` ran 19 times, and another line once: each cost 1 ms."""
    monkeypatch.setattr(profiler_costs, "_COLD_NS", {0: 0})
    prof = sampled({"parse": 60, "store": 40}, ops=[line(2, 5, 0, 60 * MS, 1, count=19)])
    prof.sources["In[1]"] += "    return text.split()\n"
    prof.info |= {"thread_id": 1, "recording_costs": {"statements": 20 * MS}}
    (found,) = of_kind(prof, "hot function")
    assert "about 51 % (39 to 63 %) of the host's time (41.0 ms, in 60 samples" in found.text
    assert ", without 19.0 ms that profiling added)" in found.text


@pytest.mark.parametrize("counts", [
    {},
    {"parse": 29},  # few samples
    {"parse": 10, "store": 8, "library": 8},
    {"parse": 20, "store": 25, "library": 40, "cell": 20},  # less than 30 %
    {"cell": 90, "library": 90},  # no function of the user
])  # fmt: skip
def test_no_function_takes_much_of_the_time(counts):
    assert not of_kind(sampled(counts), "hot function")


@pytest.mark.parametrize(("counts", "shown"), [
    ({"parse": 30}, "about 100 % (89 to 100 %) of"),
    ({"parse": 100}, "100 % of"),
    ({"parse": 18, "store": 12}, "about 60 % (42 to 75 %) of"),
    ({"parse": 60, "store": 40}, "60 % of"),
])  # fmt: skip
def test_the_share_of_few_samples_has_a_range(counts, shown):
    (found,) = of_kind(sampled(counts), "hot function")
    assert f"took {shown} the host's time" in found.text


@pytest.mark.parametrize("more", [
    lambda end: {"ops": [framework(5, "waiting for data", 0, end, 1, "data")]},
    lambda end: {"ops": [line(5, 1, 0, end, 1, name="import data")]},
    lambda end: {"ops": [op(5, "garbage collection", 0, end, 1, op_type="gc", source="python",
                            category="framework")]},
    lambda end: {"waits": [call(0, end, name="cuCtxSynchronize", correlation_id=7, op_id=1)]},
])  # fmt: skip
def test_time_of_other_findings_is_not_counted_again(more):
    """`parse` has the first 90 of 100 samples, of 1 ms each."""
    assert not of_kind(sampled({"parse": 90, "store": 10}, **more(70 * MS)), "hot function")
    (found,) = of_kind(sampled({"parse": 90, "store": 10}, **more(30 * MS)), "hot function")
    assert found.gain_ns == 60 * MS
    assert "60 % of the host's time (60.0 ms, in 60 samples)" in found.text


def test_waits_of_other_threads_count_for_nothing():
    load = framework(5, "waiting for data", 0, 70 * MS, 9, "data", thread_id=9)
    (found,) = of_kind(sampled({"parse": 90, "store": 10}, ops=[load]), "hot function")
    assert found.gain_ns == 90 * MS


def beside_worker(used, queued, own_cores, inside="parse"):
    """Thread 1 uses or waits for a core in parts of `parse`; thread 2 is in `store`."""
    prof = sampled({inside: 90, "store": 10})
    samples = prof.tables["host_samples"]
    stack, step = samples["stack_id"], MS
    prof.tables["host_samples"] = tiny.table(HOST_SAMPLES, [
        {"start_ns": i * step + thread, "stack_id": int(stack[0 if thread == 1 else -1]),
         "interval_ns": step, "thread_id": thread, "processor_ns": int(i * step * part),
         "core_wait_ns": int(i * step * (queued if thread == 1 else 0))}
        for i in range(100) for thread, part in ((1, used), (2, own_cores))
    ])  # fmt: skip
    prof.info |= {
        "load": {"own_cores": used + own_cores},
        "threads": [{"thread_id": 2, "name": "pool_0"}],
    }
    return of_kind(prof, "hot function")[0]


@pytest.mark.parametrize(("used", "queued", "own_cores", "waits"), [
    (0.05, 0.0, 0.9, True),
    (0.05, 0.8, 0.9, True),  # without the time in which it waited for a core
    (0.2, 0.7, 0.9, False),
    (0.8, 0.0, 0.9, False),
    (0.05, 0.0, 0.1, False),  # no other thread used a core for as long
])  # fmt: skip
def test_a_function_that_waits_while_other_threads_run_is_not_hot(used, queued, own_cores, waits):
    found = beside_worker(used, queued, own_cores)
    ran = ", mostly to wait while `pool_0` ran line 12 of `store` (data.py)."
    assert found.text.endswith(ran) == waits
    assert found.remedy.startswith("This code waits for a thread") == waits


def test_a_function_that_waits_for_a_process_does_not_wait_for_other_threads():
    found = beside_worker(0.05, 0.0, 0.9, inside="parse, for a process")
    assert found.text.endswith(", mostly to wait for another process.")
    assert "`--children` records child processes" in found.remedy


def test_beside_device_work_idle_time_has_the_findings():
    assert not of_kind(sampled({"parse": 90}, gpu=True), "hot function")


PROGRAM = """\
fit(texts)
def fit(texts):
    with lock:
        for t in texts:
            n = len(t)
            m = n * n
            ids = [hash(w) for w in t.split()]
    return sum(len(w)
               for w in t)
def power(v):
    return v ** 0.5
"""


def named(counts, program=PROGRAM):
    """The finding on a program with ten times these samples of each stack, and where it points."""
    rows, ids = stack_rows(*counts)
    made = profile([line(1, 1, 0, 100 * MS)], info=info(100 * MS, cell="In[1]"),
                   sources={"In[1]": program})  # fmt: skip
    made = with_stacks(made, rows)
    stacks = [stack for stack, n in zip(ids, counts.values(), strict=True) for _ in range(10 * n)]
    step = 100 * MS // len(stacks)
    made.tables["host_samples"] = tiny.table(
        HOST_SAMPLES,
        [{"start_ns": i * step, "stack_id": stack, "interval_ns": step, "thread_id": 1}
         for i, stack in enumerate(stacks)],
    )  # fmt: skip
    (found,) = of_kind(made, "hot function")
    (row,) = made.insights().query("kind == 'hot function'").to_dict("records")
    return found.text, row["line"]


@pytest.mark.parametrize(
    ("counts", "detail", "cited"),
    [
        (
            {"In[1]:1 In[1]:fit:7": 4, "In[1]:1 In[1]:fit:7 In[1]:fit.<locals>.<listcomp>:7": 6},
            "in the list comprehension at `ids = [hash(w) for w in t.split()]`",
            7,
        ),
        (
            {"In[1]:1 In[1]:fit:8 In[1]:fit.<locals>.<genexpr>:9": 10},
            "in the generator expression at `return sum(len(w)`",
            8,
        ),
        (
            {"In[1]:1 In[1]:fit:5": 4, "In[1]:1 In[1]:fit:6": 3, "In[1]:1 In[1]:fit:4": 3},
            "in the loop at `for t in texts:`",
            4,
        ),
        (
            {"In[1]:1 In[1]:fit:5": 9, "In[1]:1 In[1]:fit:6": 1},
            "at `n = len(t)` in the loop at line 4 (`for t in texts:`)",
            5,
        ),
        # In the line of the `def` a function begins.
        ({"In[1]:1 In[1]:power:10": 8, "In[1]:1 In[1]:power:11": 2}, "at `return v ** 0.5`", 11),
    ],
)
def test_the_line_to_change_is_that_of_the_loop(counts, detail, cited):
    text, number = named(counts)
    name = "power" if cited == 11 else "fit"
    assert text == (
        f"`{name}` (In[1]:{cited}) took 100 % of the host's time (100 ms, in 100 samples), most of "
        f"it {detail}."
    )
    assert number == cited


def test_a_function_that_only_begins_has_the_line_that_calls_it():
    text, number = named({"In[1]:1 In[1]:fit:5 In[1]:power:10": 10})
    assert "most of it to begin and end its calls, by line 5 (`n = len(t)`)" in text
    assert number == 5


def test_a_loop_in_an_expression_of_the_cell_is_named_as_its_line():
    text, number = named({"In[1]:1 In[1]:<genexpr>:1": 10}, "n = sum(len(t) for t in texts)\n")
    assert text == (
        "Line 1 (`n = sum(len(t) for t in texts)`) took 100 % of the host's time (100 ms, in 100 "
        "samples), most of it in its generator expression."
    )
    assert number == 1


def test_lines_of_a_loop_in_an_expression_have_the_function_around_it():
    prof = with_stacks(profile([line(1, 1, 0, 9)], info=info(9, cell="In[1]")),
                       stack_rows("In[2]:fit.<locals>.<listcomp>:3")[0])  # fmt: skip
    assert launcher_name(index_of(prof), 0, -1) == "line 3 of `fit` (In[2])"


def test_too_few_samples_of_functions_are_the_reason_for_no_finding():
    reason = sampled({"parse": 15}).insights().attrs["note"]
    assert reason == (
        "Too few samples to say what takes the time: 100 % of it was in functions, most in `parse` "
        "(In[1]:5), and the host has 15 samples of the 30 that a finding on a function needs. "
        "Repeat the cell (`%%gpuprofile --repeat N`), or run it longer."
    )
    assert "Repeat" not in of_script(sampled({"parse": 15})).insights().attrs["note"]


@pytest.mark.parametrize("counts", [{"parse": 2}, {"parse": 5, "store": 4, "cell": 6}])
def test_few_samples_name_no_function_that_chance_may_have_chosen(counts):
    reason = sampled(counts).insights().attrs["note"]
    assert reason.startswith("Too few samples")
    assert "parse" not in reason


@pytest.mark.parametrize("counts", [{"cell": 10, "parse": 2}, {"library": 15}, {}])
def test_few_samples_of_functions_are_no_reason_where_lines_are_known(counts):
    assert "Nothing was found" in sampled(counts).insights().attrs["note"]
