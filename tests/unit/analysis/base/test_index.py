"""An index of a profile: when its arrays are freed."""

from __future__ import annotations

import gc
import weakref

import pytest

from epprof_nb.analysis.base.index import ProfileIndex, index_of
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.testing import synthetic_profile


@pytest.mark.parametrize("analysis", ["critical_path", "gaps", "by_line", "what_if"])
def test_results_of_an_analysis_do_not_keep_its_index(analysis):
    prof = synthetic_profile(activities=100)
    arguments = [{"attention": 0.5}] if analysis == "what_if" else []
    freed = weakref.ref(index_of(prof))
    was_enabled = gc.isenabled()
    gc.disable()  # the index of a large profile has a gigabyte
    try:
        getattr(prof, analysis)(*arguments)
        del prof
        assert freed() is None
    finally:
        if was_enabled:
            gc.enable()


def test_an_index_is_freed_with_its_last_reference():
    prof = synthetic_profile(activities=100)
    index = ProfileIndex(ProfileData(prof.tables, prof.info))
    index.cached(lambda whole: whole.device_ids)
    index.op_sums("launch")
    index.busy()
    freed = weakref.ref(index.profile)
    was_enabled = gc.isenabled()
    gc.disable()  # a pass over pieces makes an index of each, and collections may come late
    try:
        del index
        assert freed() is None
    finally:
        if was_enabled:
            gc.enable()
