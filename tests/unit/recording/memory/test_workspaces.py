"""Workspaces of cuBLAS among PyTorch's blocks: recorded on an H200, and in a model."""

import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from epprof_nb.recording.memory.torch_snapshot import read_snapshot
from epprof_nb.recording.memory.workspaces import workspace_addresses
from tests.helpers.torch_snapshots import Allocator, recorded_snapshot, snapshot_before

MB = 1 << 20


class Tensor:
    """A tensor on a GPU, which holds the block at an address."""

    is_cuda = True

    def __init__(self, address):
        self.address = address

    def untyped_storage(self):
        return SimpleNamespace(data_ptr=lambda: self.address)


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    made = SimpleNamespace(
        __spec__=None,
        Tensor=Tensor,
        capability=(9, 0),
        _C=SimpleNamespace(DisableTorchFunctionSubclass=nullcontext),
    )
    made.cuda = SimpleNamespace(get_device_capability=lambda device: made.capability)
    monkeypatch.setitem(sys.modules, "torch", made)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    return made


def found(allocator, body=lambda: None):
    before = read_snapshot(allocator.snapshot())
    allocator.trace.clear()
    body()
    return workspace_addresses(before, read_snapshot(allocator.snapshot())).tolist()


def test_the_workspaces_of_a_recorded_training():
    snapshot = recorded_snapshot("training")
    before, after = read_snapshot(snapshot_before(snapshot)), read_snapshot(snapshot)
    addresses = workspace_addresses(before, after)
    sizes = after.blocks.nbytes[after.in_use() & (after.blocks.requested == 32 * MB)]
    assert sizes.tolist() == [32 * MB] * 2  # of the program's thread, and of the backward pass
    assert len(addresses) == 2


def test_blocks_with_tensors_and_blocks_of_the_profile_are_none():
    allocator = Allocator(256 * MB)
    workspace, held, gone = (allocator.alloc(32 * MB) for _ in range(3))
    tensor = Tensor(held)

    def body():
        allocator.free(gone)
        allocator.alloc(32 * MB)
        allocator.alloc(32 * MB)

    assert found(allocator, body) == [workspace]
    assert tensor.address == held


def test_more_than_a_stream_has_are_not_named():
    allocator = Allocator(256 * MB)
    for _ in range(3):
        allocator.alloc(32 * MB)
    assert found(allocator) == []


def test_the_size_is_that_of_the_device_or_of_the_program(torch, monkeypatch):
    allocator = Allocator(256 * MB)
    hopper, ampere, chosen = map(allocator.alloc, (32 * MB, 8320 << 10, 96 << 10))
    assert found(allocator) == [hopper, ampere]
    torch.capability = (8, 0)
    assert found(allocator) == [ampere]
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:4:32:1")
    assert found(allocator) == [chosen]
