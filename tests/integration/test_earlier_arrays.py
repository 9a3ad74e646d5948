"""Arrays of the host device that are in use for several cells keep their lines."""

import gc

import pandas as pd
import pytest

from epprof_nb import host

CELL = "%%gpuprofile prof --detail memory\n"


@pytest.fixture
def in_cells(run, shell):
    """Run cells of which the last one is profiled, and return its profile."""
    gc.collect()
    older = host.memory_info().used

    def in_cells(*cells):
        for cell in cells:
            assert run(cell).success
        return shell.user_ns["prof"]

    yield in_cells
    shell.user_ns.clear()
    gc.collect()
    assert host.memory_info().used == older


def places(prof):
    """Cell and line by bytes of what is in use at the end, without what other tests have left."""
    table = prof.memory_at("end")
    return {n: (c, line) for n, c, line in zip(table.bytes, table.cell, table.line, strict=True)}


def test_arrays_of_earlier_profiles_have_their_lines(in_cells):
    prof = in_cells(
        "from epprof_nb import host\nnew = host.empty",
        CELL + "pass\nkept = [new(111_111), new(222_222), new(333_333)]",
        "del kept[0]\nother = new(111_111)",  # it may be at the same address
        CELL + "kept[0] = None\nmine = new(444_444)",
    )
    found = places(prof)
    assert found[333_333 * 4] == ("In[2]", 3)
    assert found[444_444 * 4] == ("In[4]", 3)
    assert pd.isna(found.get(111_111 * 4, (None,))[0])
    released = prof.memory_blocks.query("bytes == 222_222 * 4")
    assert released[["earlier_cell", "earlier_line"]].to_numpy().tolist() == [["In[2]", 3]]
    found = places(in_cells(CELL + "pass"))
    assert found[333_333 * 4] == ("In[2]", 3)
    assert found[444_444 * 4] == ("In[4]", 3)
