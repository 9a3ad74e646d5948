"""Workers that cannot record: they run on, and the job says why."""

from __future__ import annotations

import os
import textwrap

import pytest

import epprof_nb
from epprof_nb.jobs.dask import recording
from tests.helpers.dask_clusters import PARAMETERS, TIMEOUT_S, pids
from tests.helpers.dask_tasks import work

distributed = pytest.importorskip("distributed")


def test_another_version_is_listed(client, monkeypatch):
    monkeypatch.setattr(recording, "package_version", lambda: "0.0.1")
    with epprof_nb.cluster(client).profile() as job:
        client.submit(work, 1, pure=False).result()
    listed = job.ranks[job.ranks["state"] == "not recorded"]
    assert set(listed["pid"]) == pids(client)
    assert all("and the notebook 0.0.1" in reason for reason in listed["reason"])
    assert {*listed["address"]} == {*client.scheduler_info()["workers"]}
    lines = [line for line in job.summary().splitlines() if "not recorded" in line]
    titles = next(line for line in job.summary().splitlines() if line.split()[:1] == ["pid"])
    assert len(lines) == 2
    assert all(line[titles.index("reason") :].startswith("it has epprof_nb") for line in lines)
    assert len(job) == 1


def test_workers_without_the_package_run_on_and_are_listed(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(
        textwrap.dedent("""
            import sys
            class Hidden:
                def find_spec(self, name, path=None, target=None):
                    if name.startswith(("epprof_nb", "_epprof")):
                        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            sys.meta_path.insert(0, Hidden())
        """)
    )
    monkeypatch.setenv("PYTHONPATH", os.fspath(tmp_path))
    with (
        distributed.LocalCluster(**PARAMETERS, n_workers=1) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = pids(client)
        with epprof_nb.cluster(client).profile() as job:
            assert client.submit(abs, -3).result() == 3
            cluster.scale(2)
            client.wait_for_workers(2, timeout=TIMEOUT_S)
            assert client.gather(client.map(abs, range(-9, 0))) == [*range(9, 0, -1)]
        assert before < pids(client)  # it has not been restarted
        listed = job.ranks[job.ranks["state"] == "not recorded"]
        assert set(listed["pid"]) == pids(client)
        assert all("epprof_nb cannot be imported there" in reason for reason in listed["reason"])
