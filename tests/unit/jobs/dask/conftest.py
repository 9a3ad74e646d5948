"""Clusters of Dask, and limits that no busy machine reaches."""

from __future__ import annotations

import pytest

from epprof_nb.jobs.dask import limits
from epprof_nb.jobs.running import cell_children
from tests.helpers.dask_clusters import PARAMETERS, TIMEOUT_S


@pytest.fixture(autouse=True)
def long_limits(monkeypatch):
    """The machine may be busy: nothing here ends by a limit, unless the test says so."""
    for module in (limits, cell_children):
        for name in ("ANSWER_S", "PREPARE_S", "END_S"):
            monkeypatch.setattr(module, name, float(TIMEOUT_S))


@pytest.fixture(scope="package")
def cluster():
    """Two workers, which tests leave as they are: to start them takes longer than most tests."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(**PARAMETERS, n_workers=2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=TIMEOUT_S)
        yield client
