"""Stacks of blocks: of the call that allocated them, else of the next call on their thread."""

import threading
import time

import pytest

import epprof_nb
from epprof_nb import host
from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.memory.block_places import block_stacks, waited_for_work
from epprof_nb.data.schema import MEMORY_BLOCKS
from tests.helpers import tiny


def of_pool(time_ns, op_id=None, **more):
    row = {"pool": "torch", "device_id": 0, "bytes": 1, "requested_bytes": 1, "address": 0}
    return row | {"allocated_ns": time_ns, "freed_ns": None, "op_id": op_id} | more


def test_a_block_of_a_pool_has_the_next_call_of_its_thread():
    ops = [
        tiny.op(1, "f", 0, 100), tiny.op(2, "g", 200, 300), tiny.op(3, "h", 0, 300, thread_id=2),
    ]  # fmt: skip
    calls = [
        tiny.call(10, 20, stack_id=7), tiny.call(30, 40, stack_id=8),
        tiny.call(250, 260, stack_id=9),
        tiny.call(12, 15, thread_id=2, stack_id=5),
    ]  # fmt: skip
    prof = tiny.profile(ops, (), calls)
    blocks = {
        "before a call": (of_pool(5, 1), 7),
        "during a call": (of_pool(33, 1), 8),
        "after the calls of its op": (of_pool(50, 1), -1),
        "before the call of its op": (of_pool(210, 2), 9),
        "on another thread": (of_pool(5, 3), 5),
        "on an unknown thread": (of_pool(305), -1),
        "from before the profile": (of_pool(None), -1),
    }
    prof.tables["memory_blocks"] = tiny.table(MEMORY_BLOCKS, [row for row, _ in blocks.values()])
    found = block_stacks(index_of(prof)).tolist()
    assert dict(zip(blocks, found, strict=True)) == {name: s for name, (_, s) in blocks.items()}


def test_a_block_without_an_op_has_the_thread_that_calls_outside_of_ops():
    ops = [tiny.op(1, "f", 100, 200), tiny.op(2, "g", 0, 300, thread_id=2)]
    calls = [
        tiny.call(150, 160, stack_id=7, op_id=1), tiny.call(350, 360, stack_id=8),
        tiny.call(340, 345, thread_id=2, stack_id=5, op_id=2),
    ]  # fmt: skip
    blocks = [of_pool(140), of_pool(330)]  # ops of two threads leave the first one in doubt
    prof = tiny.profile(ops, (), calls)
    prof.tables["memory_blocks"] = tiny.table(MEMORY_BLOCKS, blocks)
    assert block_stacks(index_of(prof)).tolist() == [-1, 8]
    calls.append(tiny.call(370, 380, thread_id=2, stack_id=6))
    prof = tiny.profile(ops, (), calls)
    prof.tables["memory_blocks"] = tiny.table(MEMORY_BLOCKS, blocks)
    assert block_stacks(index_of(prof)).tolist() == [-1, -1]


@pytest.mark.usefixtures("only_own_host_memory")
def test_blocks_of_the_host_device_have_their_own_calls():
    kept = []
    with epprof_nb.profile(detail="memory") as prof:
        for size in (100, 200):
            kept.append(host.empty(size))
            host.launch(lambda _: time.sleep(0.05), host.empty(size + 1))
        thread = threading.Thread(target=lambda: kept.append(host.empty(300)))
        thread.start()
        thread.join()
        host.synchronize()
    index = index_of(prof)
    blocks, lines = prof.tables["memory_blocks"], prof.stacks["line"].to_numpy()
    line = dict(zip(blocks["bytes"].tolist(), lines[block_stacks(index)].tolist(), strict=True))
    begin = test_blocks_of_the_host_device_have_their_own_calls.__code__.co_firstlineno
    offsets = {size // 4: at - begin for size, at in line.items()}
    assert offsets == {100: 5, 101: 6, 200: 5, 201: 6, 300: 7}
    waited = dict(zip(blocks["bytes"].tolist(), waited_for_work(index).tolist(), strict=True))
    assert {size // 4 for size, is_waiting in waited.items() if is_waiting} == {101, 201}
