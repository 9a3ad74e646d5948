"""Findings of a job: one row for what several processes have, with the task that it is about."""

from dataclasses import replace

import numpy as np
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.finding import Finding
from epprof_nb.data.schema import HOST_SAMPLES
from epprof_nb.jobs import job_findings
from epprof_nb.jobs.job import Job
from epprof_nb.testing import synthetic_profile
from tests.helpers.jobs import manifest
from tests.helpers.tiny import kernel, line, op, profile, table
from tests.helpers.walked_stacks import stack_rows, with_stacks

MS = 1_000_000


def worker(*tasks, end=500):
    """Tasks of the line 3 that end after some ms, and launch work of 1 ms before their end."""
    ops, kernels, begin = [], [], 0
    for at, (name, until) in enumerate(tasks):
        statement, task = 10 * at + 1, 10 * at + 2
        times = begin * MS, until * MS
        ops += [
            line(statement, 3, *times, cell="In[2]", name="x.compute()"),
            op(task, name, *times, statement, op_type="task"),
        ]
        kernels.append(kernel((until - 1) * MS, until * MS, task, thread_id=1))
        begin = until
    return profile(ops, kernels, info={"wall_ns": end * MS})


def notebook(*kernels):
    ops = [
        op(1, "In[2]", 0, 500 * MS, op_type="cell"),
        line(2, 2, 0, 5 * MS, 1, cell="In[2]"),
        line(3, 3, 5 * MS, 500 * MS, 1, cell="In[2]"),
    ]
    return profile(ops, kernels, info={"wall_ns": 500 * MS, "cell": "In[2]"})


def test_the_same_finding_of_several_processes_is_one_row():
    job = Job({
        0: worker(("load", 100), ("train", 120)),
        1: worker(("load", 400), ("train", 420)),
        2: worker(("save", 300)),
    })  # fmt: skip
    found = job.insights()
    idle = found[found["kind"] == "idle"].set_index("task")
    assert idle[["rank", "ranks"]].to_dict("index") == {
        "load": {"rank": 1, "ranks": 2},
        "save": {"rank": 2, "ranks": 1},
    }
    assert "while the host ran task `load`" in idle.loc["load", "text"]
    assert (idle["cell"] == "In[2]").all()
    assert (idle["line"] == 3).all()
    assert 350 * MS < idle.loc["load", "gain_ns"] <= 420 * MS
    shown = repr(found)
    assert "line 3, task load, rank 1 (most of 2): saves" in shown
    assert "line 3, task save, rank 2: saves" in shown
    assert "<td" in found._repr_html_()
    sentence = next(text for text in job.summary().splitlines() if "`load`" in text)
    assert sentence.startswith("  Task `load`, 2 processes, most of all rank 1: ")


def test_a_finding_on_a_line_is_of_the_task_that_the_host_was_in():
    """The work after the gaps is of another task than the line that ran meanwhile."""
    ends = [100 * at * MS for at in range(1, 5)]
    ops = [op(1, "waits", 0, 410 * MS, op_type="task")]
    ops += [op(at, "ends", t, t + MS, op_type="task", thread_id=2) for at, t in enumerate(ends, 2)]
    kernels = [kernel(t, t + MS, at, thread_id=2) for at, t in enumerate(ends, 2)]
    found = profile(ops, kernels, info={"wall_ns": 410 * MS})
    times = np.arange(5 * MS, 400 * MS, 10 * MS)
    rows, (stack,) = stack_rows("In[2]:poll:7")
    with_stacks(found, rows)
    samples = [{"thread_id": 1, "stack_id": stack, "interval_ns": 10 * MS, "start_ns": t}
               for t in times.tolist()]  # fmt: skip
    found.tables["host_samples"] = table(HOST_SAMPLES, samples)
    finding = Finding(
        "", 1, 0, 410 * MS, kind="idle", stack_id=stack, rows=lambda: np.arange(len(kernels))
    )
    index = ProfileIndex(found)
    assert job_findings._task(index, finding) == "waits"
    assert job_findings._task(index, replace(finding, kind="hot function")) == "waits"
    assert job_findings._task(index, replace(finding, kind="wait")) == "ends"
    nowhere = replace(finding, kind="memory", rows=lambda: np.empty(0, np.int64))
    assert job_findings._task(index, nowhere) is None


def test_a_finding_leads_to_its_evidence():
    job = Job({rank: synthetic_profile(activities=100, seed=rank) for rank in range(3)})
    found = job.insights()
    assert len(found)
    for row in found.itertuples():
        own = job[row.rank].insights().iloc[row.finding - 1]
        assert own["kind"] == row.kind
        assert own["line"] == row.line
        assert len(job[row.rank].evidence(row.finding))
        assert job.placements[row.rank].offset_ns + own["start_ns"] == row.start_ns


@pytest.mark.parametrize(
    ("kernels", "kind"),
    [((), "hot line"), ((kernel(MS, 2 * MS, 2, thread_id=1),), "idle")],
)
def test_the_line_where_the_notebook_waits_for_its_tasks_is_no_finding(kernels, kind):
    alone = Job({0: notebook(*kernels)}).insights()
    assert alone.loc[alone["line"] == 3, "kind"].tolist() == [kind]
    both = Job(
        {0: notebook(*kernels), 1: worker(("load", 400))},
        {0: manifest(pid=900, followed="cell"), 1: manifest(pid=901, followed="dask")},
    ).insights()
    assert set(both.loc[both["line"] == 3, "rank"]) == {1}
    assert both.loc[both["rank"] == 1, "task"].tolist() == ["load"]


def test_what_is_little_of_the_job_is_left_out():
    short = worker(("load", 9), end=10)
    assert len(Job({0: short}).insights())
    found = Job({0: short, 1: worker(end=100_000)}).insights()
    assert not (found["rank"] == 0).any()
    assert "Nothing was found" in repr(found)


def test_the_rank_of_the_greatest_time_is_missing_if_no_process_has_any():
    job = Job({0: worker(("load", 100)), 1: profile([op(1, "wait", 0, MS, op_type="task")])})
    tasks = job.by_task().set_index("task")
    assert tasks["max_device_rank"].isna().to_dict() == {"load": False, "wait": True}
    assert tasks["max_host_rank"].to_dict() == {"load": 0, "wait": 1}
    ops = job.by_op().set_index("name")
    assert ops["max_device_rank"].isna()[["load", "wait"]].tolist() == [False, True]
    assert ops.loc["wait", "max_host_rank"] == 1
