"""Blocks of PyTorch's memory on a GPU: their sums, ops and categories against PyTorch's own."""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest

import epprof_nb
from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.memory.block_categories import block_categories

torch = pytest.importorskip("torch")


class Net(torch.nn.Module):
    def __init__(self, width=512, layers=4):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(layers))

    def forward(self, values):
        for layer in self.layers:
            values = layer(values).sigmoid()
        return values


def train(net, optimizer, batch):
    loss = net(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def test_sums_are_those_of_pytorch():
    with epprof_nb.profile(detail="memory") as prof:
        net = Net().cuda()
        optimizer = torch.optim.AdamW(net.parameters())
        batch = torch.randn(300, 512, device="cuda")
        torch.cuda.reset_peak_memory_stats()
        for _ in range(3):
            train(net, optimizer, batch)
    blocks = prof.memory_blocks[prof.memory_blocks["pool"].str.startswith("torch")]
    peak = torch.cuda.max_memory_allocated()
    times = blocks["allocated_ns"].fillna(-1), blocks["freed_ns"].fillna(2**62)
    begins = np.sort(times[0].to_numpy(np.int64))
    most = max(
        blocks["bytes"][(times[0] <= moment) & (times[1] > moment)].sum() for moment in begins
    )
    assert most == peak
    at_end = blocks[blocks["freed_ns"].isna()]
    assert at_end["bytes"].sum() == torch.cuda.memory_allocated()
    pools = prof.memory_pools()
    held = pools[pools["pool"].str.startswith("torch")]["held_bytes"].sum()
    assert held == torch.cuda.memory_reserved()


def test_categories_are_those_of_the_tensors():
    saved, gradients = {}, {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    batch = torch.randn(300, 512, device="cuda")
    net = Net().cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    kept = {p.untyped_storage().data_ptr() for p in net.parameters()} | {batch.data_ptr()}
    with epprof_nb.profile(detail="memory") as prof:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loss = net(batch).square().mean()
        loss.backward()
        for parameter in net.parameters():
            storage = parameter.grad.untyped_storage()
            gradients[storage.data_ptr()] = storage.nbytes()
        optimizer.step()
    saved = {address: size for address, size in saved.items() if address not in kept}
    states = [v for s in optimizer.state.values() for v in s.values() if v.is_cuda]
    blocks = prof.memory_blocks.assign(
        category=[str(name) for name in block_categories(index_of(prof)).to_list()]
    )
    found = blocks.groupby("category")

    def rounded(sizes):
        return sum(-(-size // 512) * 512 for size in sizes)

    assert set(found.get_group("activation")["address"]) == set(saved)
    assert found.get_group("activation")["bytes"].sum() == rounded(saved.values())
    assert set(found.get_group("gradient")["address"]) == set(gradients)
    assert found.get_group("optimizer state")["requested_bytes"].sum() == sum(
        state.untyped_storage().nbytes() for state in states
    )
    assert found.get_group("parameter")["requested_bytes"].sum() == sum(
        p.nbytes for p in net.parameters()
    )


def test_parameters_of_a_model_that_is_gone_have_their_category():
    torch.zeros(1, device="cuda")

    def trained():
        net = Net().cuda()
        train(net, torch.optim.SGD(net.parameters(), lr=0.1), torch.ones(300, 512, device="cuda"))
        return sum(parameter.untyped_storage().nbytes() for parameter in net.parameters())

    with epprof_nb.profile(detail="memory") as prof:
        nbytes = trained()
        gc.collect()  # the optimizer refers to itself
    found = prof.memory_blocks[prof.memory_blocks["category"] == "parameter"]
    assert found["requested_bytes"].sum() == nbytes
    assert found["freed_ns"].notna().all()


CONTEXT = """
import torch, epprof_nb

def held():
    return torch.zeros(1 << 20, device="cuda")

with epprof_nb.profile(detail="memory") as prof:
    first = held()
    torch.cuda.synchronize()
with epprof_nb.profile(detail="memory") as again:
    second = held()
    torch.cuda.synchronize()
for each in (prof, again):
    pools = each.memory_pools().set_index("pool")["held_bytes"]
    print(*(pools.fillna(-1).get(name, -2) for name in ("context", "(unnamed)", "torch")))
"""


def test_the_context_is_measured():
    """It is most of what the process holds besides PyTorch, also in a later profile."""
    run = subprocess.run(
        [sys.executable, "-c", CONTEXT], capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "0"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    rows = [[int(number) for number in line.split()] for line in run.stdout.splitlines()]
    print(rows)
    if rows[0][1] == -1:
        pytest.skip("NVML does not list this process")
    for context, unnamed, pytorch in rows:
        assert pytorch >= 4 << 20
        assert context >= 100 << 20
        assert unnamed < context
    assert rows[0][0] == rows[1][0]


THREADS = """
import threading, torch, epprof_nb
from torch.cuda import _gpu_trace
here, truth = threading.local(), {}
torch.zeros(1, device="cuda")

def allocated(address):
    truth.setdefault(address, []).append(getattr(here, "name", None))

_gpu_trace.register_callback_for_memory_allocation(allocated)
torch._C._activate_gpu_trace()

def work(thread):
    weights = torch.randn(64, 64, device="cuda", requires_grad=True)
    for step in range(200):
        here.name = f"{thread} forward"
        with epprof_nb.op(here.name):
            loss = (weights @ weights).tanh().sum()
        here.name = f"{thread} optimizer"
        with epprof_nb.op(here.name):
            with torch.no_grad():
                weights -= weights * 0.01
        here.name = None

with epprof_nb.profile(detail="memory") as prof:
    threads = [threading.Thread(target=work, args=(n,)) for n in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

blocks = prof.memory_blocks
made = blocks[blocks["allocated_ns"].notna() & (blocks["pool"] == "torch")]
names = prof.ops["name"]
right = wrong = unknown = 0
for address, rows in made.sort_values("allocated_ns").groupby("address"):
    for op, name in zip(rows["op_id"], truth[address][-len(rows):]):
        if str(op) == "<NA>":
            unknown += 1
        elif names[op] == name:
            right += 1
        else:
            wrong += 1
print(right, wrong, unknown)
"""


def test_two_training_threads_have_no_wrong_op():
    run = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=600, check=False
    )
    assert run.returncode == 0, run.stderr
    right, wrong, unknown = map(int, run.stdout.split())
    print("right", right, "wrong", wrong, "unknown", unknown)
    assert wrong == 0
    assert right + unknown > 1000


def test_a_session_that_another_thread_ends_leaves_no_hook():
    torch.zeros(1, device="cuda")
    with epprof_nb.profile(detail="memory", time_limit_s=0.2) as prof:
        assert torch._C._cuda_isHistoryEnabled()
        while torch._C._cuda_isHistoryEnabled():
            torch.zeros(1, device="cuda")
    assert len(prof.memory_blocks) > 0

    def annotations():
        with torch.autograd.profiler.record_function("later"):
            torch.zeros(1, device="cuda")
        return len(torch.cuda.memory._snapshot()["external_annotations"])

    assert annotations() == annotations()


HISTORY = """
import epprof_nb, torch
from epprof_nb.recording.memory.history_calls import HISTORY_CALLS
HISTORY_CALLS.follow()
record = torch.cuda.memory._record_memory_history
record({options})
old = torch.zeros(5000, device="cuda")
torch.zeros(3000, device="cuda")
events = len(torch.cuda.memory._snapshot()["device_traces"][0]) if {quick} else 0
for _ in range(2):
    with epprof_nb.profile(detail="memory") as prof, epprof_nb.op("first"):
        new = torch.zeros(1000, device="cuda")
assert torch._C._cuda_isHistoryEnabled()
blocks = prof.memory_blocks
names = prof.ops["name"]
seen = blocks.dropna(subset=["allocated_ns"])
print(len(seen), *{{names.get(op) for op in seen["op_id"]}})
print(prof.memory_pools().set_index("pool").loc["torch", "in_use_bytes"])
print(torch.cuda.memory_allocated())
print(prof.info.get("notes"))
if {quick}:
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    assert len(trace) > events
    assert {{event["user_metadata"] for event in trace}} == {{""}}
"""


@pytest.mark.parametrize(
    ("options", "is_read"),
    [("context=None, max_entries=10_000", True), ("stacks='python'", False), ("", False)],
)
def test_a_history_of_the_program_is_never_changed(options, is_read):
    run = subprocess.run(
        [sys.executable, "-c", HISTORY.format(options=options, quick=is_read)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    seen, in_use, allocated, notes = run.stdout.strip().split("\n")
    assert in_use == allocated
    assert seen == ("1 first" if is_read else "0")
    assert ("stacks" in notes) != is_read
