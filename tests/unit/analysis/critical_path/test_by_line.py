"""The critical path by line: functions that a cell calls, in whichever file."""

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.rules.device_work.hidden_work import critical_work
from epprof_nb.data.table import concat
from tests.helpers.tiny import activity, call, kernel, line, op, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks


def two_streams():
    """A cell that calls f, which launches work of two streams and waits for both."""
    cell = "In[1]:1 model.py:f"
    rows, (slow, long, wait) = stack_rows(f"{cell}:2 lib/nn.py:g:9", f"{cell}:3", f"{cell}:4")
    prof = profile(
        ops=[op(1, "In[1]", 0, 110, op_type="cell"), line(2, 1, 0, 110, 1)],
        activities=[
            kernel(5, 95, 2, correlation_id=1, stack_id=slow),
            kernel(15, 85, 2, correlation_id=2, stream_id=8, stack_id=long),
            activity("synchronization", 20, 100, 2, correlation_id=3, name="context_synchronize"),
        ],
        api_calls=[
            call(2, 4, correlation_id=1, op_id=2, stack_id=slow),
            call(12, 14, correlation_id=2, op_id=2, stack_id=long),
            call(20, 100, correlation_id=3, op_id=2, stack_id=wait, name="cuCtxSynchronize"),
        ],
        info={"wall_ns": 110, "cell": "In[1]"},
        sources={"In[1]": "f(x)", "model.py": "def f(x):\n    a(x)\n    b(x)\n    wait()"},
    )
    return with_stacks(prof, rows)


def test_each_line_has_its_time_and_what_it_can_save():
    frame = two_streams().critical_path(by="line")
    found = frame.set_index("source").to_dict("index")
    assert list(found) == ["f(x)", "a(x)", "wait()"]
    whole, slow, wait = found.values()
    assert (whole["path_ns"], whole["saving_ns"], whole["self_path_ns"]) == (110, 110, 2 + 10)
    # From the launch to the end of the kernel; the kernel of b(x) then ends at 85, 2 ns earlier.
    assert (slow["path_ns"], slow["self_path_ns"], slow["cell"]) == (93, 93, "model.py")
    assert (slow["function"], slow["line"], slow["saving_ns"]) == ("f", 2, 100 - (85 + 5) + 2)
    # Without the wait, the code after it does not run after the kernel of b(x), which ends at 95.
    assert (wait["path_ns"], wait["saving_ns"], wait["device_path_ns"]) == (5, 110 - 95, 5)
    assert frame["self_path_ns"].sum() == 110
    assert (frame["host_path_ns"] + frame["device_path_ns"] == frame["path_ns"]).all()


def test_the_finding_of_hidden_work_has_the_saving_of_its_line():
    prof = two_streams()
    long = prof.tables["activities"]["stack_id"][1]
    more = profile(
        activities=[
            kernel(15, 80, 2, stream_id=n, stack_id=long, correlation_id=2) for n in (9, 10)
        ]
    ).tables["activities"]
    prof.tables["activities"] = concat([prof.tables["activities"], more])
    (finding,) = critical_work(ProfileIndex(prof))
    assert finding.text.startswith("Line 2 of `f` (model.py: `a(x)`) is on the critical path")
    assert finding.gain_ns == 12 < 90


def test_without_stacks_they_are_the_statements():
    prof = two_streams()
    prof.tables["stacks"] = profile().tables["stacks"]
    for name in ("activities", "api_calls"):
        prof.tables[name] = prof.tables[name].replace(
            stack_id=prof.tables[name]["stack_id"] * 0 - 1
        )
    frame = prof.critical_path(by="line")
    assert frame["source"].tolist() == ["f(x)"]
    assert frame["path_ns"].tolist() == frame["self_path_ns"].tolist() == [110]
