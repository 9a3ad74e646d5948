"""Cells and lines of blocks from earlier profiles, kept only while they are certain."""

import pytest

from epprof_nb.data.schema import MEMORY, OPS
from epprof_nb.data.table import Table
from epprof_nb.recording.memory.block_tables import pool_tables
from epprof_nb.recording.memory.earlier_blocks import EarlierBlocks, StorageReferences
from epprof_nb.recording.memory.torch_history import TorchMemory
from epprof_nb.recording.memory.torch_snapshot import read_snapshot
from tests.helpers import tiny
from tests.helpers.torch_snapshots import Allocator


def ops_of(cell, begin_us):
    """A cell with a statement in line 3, and a call in it."""
    begin, end = begin_us * 1000, (begin_us + 100) * 1000
    rows = [
        tiny.line(1, 3, begin, end, name="work", cell=cell),
        tiny.op(2, "call", begin + 1000, end - 1000, 1),
    ]
    return tiny.table(OPS, rows)


class Notebook:
    """Cells that are profiled, with a model of PyTorch's allocator."""

    def __init__(self):
        self.allocator, self.earlier = Allocator(8 << 20), EarlierBlocks()
        self.made, self.references = 0, StorageReferences()

    def alloc(self):
        self.made += 1
        return self.allocator.alloc(1000)

    def profile(self, cell, body):
        """Run a cell and return the cell and line of each block that is older, by address."""
        before = read_snapshot(self.allocator.snapshot())
        certain = self.earlier.certain(self.made, self.references)
        self.allocator.trace.clear()
        begin_us = self.allocator.now_us = self.allocator.now_us + 1000
        self.allocator.now_us += 50
        body()
        after = read_snapshot(self.allocator.snapshot())
        recorded = TorchMemory(
            before, after, 0, 0, earlier=certain,
            keep_places=lambda places: self.earlier.keep(places, self.made),
        )  # fmt: skip
        blocks = pool_tables(Table(MEMORY), [recorded], ops_of(cell, begin_us), 0)["memory_blocks"]
        places = zip(
            blocks["address"].tolist(), blocks.names("earlier_cell").to_list(),
            blocks["earlier_line"].tolist(), strict=True,
        )  # fmt: skip
        return {address: (cell, line) for address, cell, line in places if cell is not None}


def test_lines_last_while_nothing_is_allocated_between_profiles():
    notebook, kept = Notebook(), []
    assert (
        notebook.profile("In[1]", lambda: kept.extend([notebook.alloc(), notebook.alloc()])) == {}
    )
    notebook.allocator.free(kept[0])  # without a profile
    assert notebook.profile("In[2]", lambda: kept.append(notebook.alloc())) == {
        kept[1]: ("In[1]", 3)
    }
    assert notebook.profile("In[3]", lambda: None) == {
        kept[1]: ("In[1]", 3), kept[2]: ("In[2]", 3),
    }  # fmt: skip


def test_an_address_that_may_be_reused_has_no_line():
    notebook, kept = Notebook(), []
    notebook.profile("In[1]", lambda: kept.append(notebook.alloc()))
    notebook.allocator.free(kept[0])
    assert notebook.alloc() == kept[0]  # other memory at the same address
    assert notebook.profile("In[2]", lambda: None) == {}


def test_a_storage_that_lives_keeps_its_line():
    torch = pytest.importorskip("torch")
    tensors = [torch.zeros(100), torch.zeros(100), torch.zeros(100)]
    address = [tensor.data_ptr() for tensor in tensors]
    earlier = EarlierBlocks()
    earlier.keep(dict.fromkeys(address, ("In[1]", 3)), 5)
    references = StorageReferences(tensors)
    assert set(earlier.certain(6, references)) == set(address)
    del tensors[2]
    tensors[1].untyped_storage().resize_(100_000)  # elsewhere
    assert set(earlier.certain(6, references)) == {address[0]}
    assert set(earlier.certain(5, references)) == set(address)
