"""The index that is kept with a profile: shared, replaced after a change, freed with it."""

import gc
import weakref
from threading import Lock

import numpy as np
import pytest

from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.findings import ranking
from epprof_nb.analysis.findings.finding import computed_later
from epprof_nb.data.schema import OPS
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import line, nested, op, table


@pytest.fixture
def ranked(monkeypatch):
    """How often findings were computed."""
    computed = []
    compute = ranking._ranked

    def counted(index):
        computed.append(index)
        return compute(index)

    monkeypatch.setattr(ranking, "_ranked", counted)
    return computed


def test_findings_are_computed_once(ranked):
    prof = synthetic_profile(activities=500)
    first = prof.insights()
    prof.evidence(1)
    prof.summary()
    assert prof.insights().equals(first)
    assert len(ranked) == 1


def test_analyses_share_the_index(monkeypatch):
    prof = nested()
    assert index_of(prof).tree is index_of(prof).tree
    prof.by_op()
    monkeypatch.setattr(
        "epprof_nb.analysis.base.index.OpTree", lambda _: pytest.fail("built again")
    )
    prof.by_line(), prof.by_path(), prof.critical_path(), prof.gaps(), prof.summary()


def test_a_changed_profile_has_a_new_index(ranked):
    prof = nested()
    before = index_of(prof)
    prof.info["wall_ns"] = 5_000
    prof.info["nested"] = {"list": [1]}
    after = index_of(prof)
    assert after is not before
    prof.info["nested"]["list"].append(2)
    assert index_of(prof) is not after
    prof.tables["ops"] = table(OPS, [op(1, "other", 0, 10), line(2, 1, 0, 9, 1)])
    assert set(prof.by_op()["name"]) >= {"other", "line 1"}
    prof.sources["In[1]"] = "changed()"
    assert prof.by_line()["source"].tolist()[0] == "changed()"
    assert prof.summary().startswith("5.00 µs wall")


@pytest.mark.parametrize("processes", [None, [{"name": "rank 0"}]])
def test_the_index_is_freed_with_its_profile(processes):
    prof = synthetic_profile(activities=500)
    if processes:
        prof.info["processes"] = processes
    assert len(prof.insights())
    assert len(prof.evidence(1))
    gone = weakref.ref(prof), weakref.ref(index_of(prof))
    gc.collect()
    gc.disable()
    try:
        del prof
        assert gone[0]() is None
        assert gone[1]() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("make", [lambda: np.arange(3), Lock])
def test_a_value_that_cannot_be_compared_or_copied_breaks_no_analysis(make):
    prof = nested()
    wanted = prof.by_op()
    prof.info["mine"] = make()
    assert prof.by_op().equals(wanted)
    assert prof.by_op().equals(wanted)


def test_a_finding_of_a_freed_profile_says_so():
    prof = synthetic_profile(activities=500)
    later = computed_later(index_of(prof), lambda index: len(index.tree))
    assert later() == len(prof.ops)
    del prof
    gc.collect()
    with pytest.raises(ReferenceError, match="keep the profile"):
        later()
