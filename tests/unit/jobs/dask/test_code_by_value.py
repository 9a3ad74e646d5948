"""Code of cells that cloudpickle sends to workers without the name of its file."""

from __future__ import annotations

import linecache

import pandas as pd
import pytest

import epprof_nb

distributed = pytest.importorskip("distributed")

FILE = "<ipython-input-7-0123456789ab>"
OLD = "<ipython-input-5-0123456789ab>"
SOURCE = """
def launch(x):
    import numpy as np
    from epprof_nb import host
    a = host.to_device(np.ones(100, np.float32))
    host.launch(np.sqrt, a, a)  # of launch
    host.synchronize()
    return x

run = lambda x: launch(x)
"""


@pytest.fixture
def cell(monkeypatch):
    """Return the names of a cell that has run twice, with other text before."""
    for file, text in ((OLD, SOURCE.replace("of launch", "old")), (FILE, SOURCE)):
        lines = text.splitlines(keepends=True)
        monkeypatch.setitem(linecache.cache, file, (len(text), None, lines, file))
    names = {"__name__": "__main__"}
    exec(compile(SOURCE, FILE, "exec"), names)
    return names


def launched_by(prof):
    """Return the frames of the user's code in which the kernels were launched, innermost first."""
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    frames, stack = [], kernels["stack_id"].iloc[0]
    while not pd.isna(stack):
        frame = prof.stacks.loc[stack]
        frames += [frame] if frame["owner"] != "library" else []
        stack = frame["parent_id"]
    return frames


def test_code_of_a_cell_has_its_name_and_text_on_workers(client, cell, tmp_path):
    with epprof_nb.cluster(client).profile(folder=tmp_path / "run") as job:
        client.gather(client.map(cell["run"], range(20), pure=False))
    for found in (job, epprof_nb.load(tmp_path / "run")):
        assert found.is_complete, found.ranks
        for rank in (1, 2):
            inner, outer = launched_by(found[rank])
            assert (inner["file"], inner["function"], inner["line"]) == ("In[7]", "launch", 6)
            assert (outer["file"], outer["function"], outer["line"]) == ("In[7]", "<lambda>", 10)
            assert inner["owner"] == outer["owner"] == "cell"
            assert found[rank].sources["In[7]"] == SOURCE.rstrip("\n")
    # One of the two lines with device work has most of it.
    assert "of `launch` (In[7]: `" in " ".join(job[1].insights()["text"])


def test_code_of_a_cell_has_its_name_in_a_cluster_of_this_process(cell):
    with (
        distributed.LocalCluster(processes=False, n_workers=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        epprof_nb.cluster(client).profile() as job,
    ):
        client.submit(cell["run"], 1, pure=False).result()
    inner, outer = launched_by(job[0])
    assert (inner["file"], inner["line"]) == (outer["file"], 6) == ("In[7]", 6)
    assert job[0].sources["In[7]"] == SOURCE.rstrip("\n")


def test_code_that_nobody_knows_is_the_users(client, cell):
    exec("def launch(x, old=launch):\n\n\n    return old(x)", cell)
    with epprof_nb.cluster(client).profile() as job:
        client.gather(client.map(cell["launch"], range(20), pure=False))
    outer = launched_by(job[1])[-1]
    assert (outer["file"], outer["owner"], outer["line"]) == ("<dynamic-code>", "own", 4)
