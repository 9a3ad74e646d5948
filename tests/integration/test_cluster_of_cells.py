"""``%%gpuprofile job --cluster client`` with a Dask cluster in the process of the cell."""

from __future__ import annotations

import pytest

import epprof_nb
from tests.helpers.dask_tasks import work

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


@pytest.fixture
def client(shell):
    parameters = {"processes": False, "n_workers": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**parameters) as cluster, distributed.Client(cluster) as client:
        shell.user_ns.update(client=client, work=work)
        yield client


def test_a_cell_has_a_job_with_its_tasks(run, shell, shown, client):
    run("%%gpuprofile job --cluster client\nx = client.submit(work, 1, pure=False).result()")
    job = shell.user_ns["job"]
    assert job.by_task()[["task", "kernels"]].to_numpy().tolist() == [["work", 1]]
    assert job.ranks["followed"].tolist() == ["cell"]
    assert shown[-2] is job
    assert shell.user_ns["x"] == job.ranks.loc[0, "pid"]


def test_tasks_are_below_the_line_that_submitted_them(run, shell, client):
    submit = client.__dict__.get("_graph_to_futures")
    run(
        "%%gpuprofile job --cluster client\n"
        "a = client.submit(work, 1, key='a-1', pure=False)\n"
        "def f():\n"
        "    return client.submit(work, 1, key='b-1', pure=False)\n"
        "x = [a.result(), f().result()]"
    )
    ops = shell.user_ns["job"][0].ops
    tasks = ops[ops["op_type"] == "task"]
    lines = ops.loc[tasks["parent_op_id"], ["cell", "op_type", "line", "name"]].to_numpy().tolist()
    cell = ops["cell"].dropna().iloc[0]
    assert dict(zip(tasks["name"], lines, strict=True)) == {
        "a": [cell, "line", 2, "a = client.submit(work, 1, key='a-1', pure=False)"],
        "b": [cell, "line", 4, "return client.submit(work, 1, key='b-1', pure=False)"],
    }
    assert client.__dict__.get("_graph_to_futures") == submit


def test_a_line_counts_its_tasks_and_its_own_executions(run, shell, client):
    run(
        "%%gpuprofile job --cluster client\n"
        "for _ in range(2):\n"
        "    client.gather(client.map(work, range(3), pure=False))"
    )
    ops = shell.user_ns["job"].by_op().set_index("line")
    assert ops.loc[3, "count"] == 2 * (1 + 3)


def test_annotations_that_are_no_lines_are_ignored(client):
    for line in ("x", [1], ["In[1]", "a", 1, "x"], [["In[1]"], 1, 1, "x"], {"a": 1}):
        with dask.annotate(epprof_line=line), epprof_nb.profile() as prof:
            assert client.submit(work, 1, pure=False).result()
        tasks = prof.ops[prof.ops["op_type"] == "task"]
        assert tasks["parent_op_id"].isna().all()


def test_an_error_of_the_cell_comes_through(run, shell, client):
    result = run("%%gpuprofile job --cluster client\nclient.submit(int, 'x').result()")
    assert isinstance(result.error_in_exec, ValueError)
    assert shell.user_ns["job"][0].info["error"] == "ValueError"


def test_a_cell_without_a_client_does_not_run(run, shell, capsys):
    run("%%gpuprofile job --cluster nothing\nran = True")
    run("text = 'tcp://1.2.3.4'")
    run("%%gpuprofile job --cluster text\nran = True")
    assert not {"ran", "job"} & shell.user_ns.keys()
    errors = capsys.readouterr()
    assert "nothing is not defined" in errors.out + errors.err
    assert "a client of Dask is needed, not str" in errors.out + errors.err


def test_a_closed_client_leaves_the_profile_of_the_cell(run, shell, client, capsys):
    client.close()
    run("%%gpuprofile job --cluster client\nran = True")
    assert shell.user_ns["ran"]
    err = capsys.readouterr().err
    assert "the workers of the cluster are not recorded: The client of the cluster is closed" in err
    assert shell.user_ns["job"].info["cell"]


@pytest.mark.parametrize("options", ["--save run.epprof", "--children"])
def test_options_that_contradict_are_refused(run, shell, client, options):
    run(f"%%gpuprofile job --cluster client {options}\nran = True")
    assert "ran" not in shell.user_ns
