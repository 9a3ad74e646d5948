"""Pickles of profiles."""

from __future__ import annotations

import pickle
import pickletools

import epprof_nb
from epprof_nb import host

MODULES = {"epprof_nb.data.kernel_names", "epprof_nb.data.names", "epprof_nb.data.schema",
           "epprof_nb.data.table", "epprof_nb.profiles"}  # fmt: skip


def test_pickles_name_modules_that_keep_their_places():
    """A pickle of an earlier version opens only while these modules exist."""
    with epprof_nb.profile() as prof, epprof_nb.op("sum"):
        host.launch(lambda: None)
        host.synchronize()
    prof.by_op()
    assert prof.insights() is not None
    pickled = pickle.dumps(prof)
    texts = [value for _, value, _ in pickletools.genops(pickled) if isinstance(value, str)]
    assert {text for text in texts if text.startswith("epprof_nb.")} == MODULES
    assert pickle.loads(pickled).by_op().equals(prof.by_op())
