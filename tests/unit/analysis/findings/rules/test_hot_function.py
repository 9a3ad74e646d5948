"""Findings on the function with most samples of the host."""

import pytest

from epprof_nb.data.schema import HOST_SAMPLES
from tests.helpers import tiny
from tests.helpers.planted import MS, info, of_kind
from tests.helpers.tiny import call, kernel, line, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks

STACKS = {
    "parse": "In[1]:2 In[1]:parse:5",
    "parse, in a library": "In[1]:2 In[1]:parse:6 lib/json.py:loads:9",
    "store": "In[1]:3 data.py:store:12",
    "cell": "In[1]:3",
    "library": "lib/run.py:run:1",
}
SOURCE = "items = load()\nrows = [parse(item) for item in items]\nstore(rows)\ndef parse(text):\n"


def sampled(counts, *, gpu=False, wall=100 * MS):
    """A profile with this number of samples of each stack, all of one interval."""
    rows, ids = stack_rows(*STACKS.values())
    work = [kernel(0, MS, 1, correlation_id=1, thread_id=1)] if gpu else []
    calls = [call(0, MS // 2, correlation_id=1, op_id=1)] if gpu else []
    made = profile([line(1, 2, 0, wall)], work, calls, info=info(wall, cell="In[1]"),
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


def test_the_function_with_most_samples_is_named():
    found = of_kind(sampled({"parse": 40, "parse, in a library": 20, "store": 40}), "hot function")
    (found,) = found
    assert found.text.startswith(
        "`parse` (In[1]:5) took 60 % of the host's time (60.0 ms, in 60 samples)"
    )
    assert found.gain_ns == 60 * MS
    assert (found.low_ns, found.high_ns) == (0, pytest.approx(70 * MS, rel=0.01))
    prof = sampled({"parse": 60, "store": 40})
    assert prof.insights().iloc[0][["cell", "line"]].tolist() == ["In[1]", 5]


@pytest.mark.parametrize("counts", [
    {},
    {"parse": 10},  # few samples
    {"parse": 20, "store": 25, "library": 40, "cell": 20},  # less than 30 %
    {"cell": 90, "library": 90},  # no function of the user
])  # fmt: skip
def test_no_function_takes_much_of_the_time(counts):
    assert not of_kind(sampled(counts), "hot function")


def test_beside_device_work_idle_time_has_the_findings():
    assert not of_kind(sampled({"parse": 90}, gpu=True), "hot function")
