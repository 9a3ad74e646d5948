"""Modules of PyTorch on a GPU: each kernel belongs to the module that launched it."""

import json
import os
import subprocess
import sys
import textwrap
import threading

import pytest

import epprof_nb
from epprof_nb.recording.torch import backward_passes

pytest.importorskip("cupy", reason="CuPy is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn  # noqa: E402 - torch may be missing
from torch.utils.checkpoint import checkpoint  # noqa: E402

from tests.gpu.oracle import device_ns, op_path  # noqa: E402
from tests.gpu.torch.torch_layers import Layer, modules_of_kernels, warm_up, work  # noqa: E402
from tests.helpers.threads import run_all  # noqa: E402


class Model(nn.Module):
    """Layers in a container, one of them called twice, and one under two names."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(Layer("a"), nn.ReLU())
        self.twice = Layer("b")
        self.block = nn.ModuleDict({"inner": Layer("c")})
        self.again = self.twice

    def forward(self, values):
        values = self.twice(self.first(values))
        return self.block["inner"](self.again(values))


@pytest.fixture
def model(named):
    torch.manual_seed(0)
    made = Model().cuda()
    named(model=made)
    values = torch.randn(8, 16, device="cuda")
    warm_up(made, values)
    return made, values


EXPECTED = {
    f"{label}_{way}": {path}
    for label, path in (
        ("a", "model.first.0"), ("b", "model.twice"), ("c", "model.block.inner"), ("loss", None),
    )
    for way in ("forward", "backward")
}  # fmt: skip


def step(net, values):
    with epprof_nb.op("step"):
        work(net(values), "loss").sum().backward()


def test_kernels_belong_to_their_module_forward_and_backward(model):
    net, values = model
    with epprof_nb.profile() as prof:
        for _ in range(3):
            step(net, values)
    assert modules_of_kernels(prof) == EXPECTED
    assert prof.info["attribution"]["none"] == 0
    assert prof.info["notes"] == []
    table = prof.by_module()
    assert table.loc["model.twice", "calls"] == 6
    assert (table["forward_ns"] + table["backward_ns"] + table["other_ns"]).equals(
        table["device_ns"]
    )
    assert table["self_device_ns"].sum() == device_ns(prof)
    assert min(table.loc["model.first.0", ["forward_ns", "backward_ns"]]) > 0


def test_kernels_of_a_training_step_belong_to_modules_optimizer_or_lines(model):
    net, values = model
    optimizer = torch.optim.AdamW(net.parameters())
    with epprof_nb.profile() as prof:
        for _ in range(3):
            with epprof_nb.op("line"):
                loss = nn.functional.mse_loss(net(values), values)
                loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    launched = prof.activities[prof.activities["kind"].isin(["kernel", "memcpy", "memset"])]
    assert launched["op_id"].notna().all()
    outermost = {op_path(prof, op)[-1] for op in launched["op_id"]}
    assert outermost == {"line", "clip_grad_norm_", "AdamW.step", "AdamW.zero_grad"}
    assert prof.info["notes"] == []


@pytest.mark.parametrize("reentrant", [False, True])
def test_recomputation_is_backward_work(model, reentrant):
    net, values = model
    values = values.clone().requires_grad_()
    with epprof_nb.profile() as prof, epprof_nb.op("step"):
        checkpoint(net.first, values, use_reentrant=reentrant).sum().backward()
    found = modules_of_kernels(prof)
    assert found == {name: EXPECTED[name] for name in ("a_forward", "a_backward")}
    names = prof.activities["name"].astype(str)
    assert (names == "a_forward").sum() == 2
    row = prof.by_module().loc["model.first.0"]
    first = prof.activities[names == "a_forward"].sort_values("start_ns")["duration_ns"].iloc[0]
    assert row["backward_ns"] > row["device_ns"] - row["backward_ns"] > first


class Positions(nn.Module):
    """Parameters whose gradients are sums, copies, and parts of others."""

    def __init__(self):
        super().__init__()
        self.tokens, self.position = nn.Embedding(16, 16), nn.Parameter(torch.zeros(4, 16))
        self.scale = nn.Parameter(torch.ones(4))
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 16, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, numbers):
        values = self.tokens(numbers) + self.position
        values = values + checkpoint(self.layers, values, use_reentrant=False)
        return self.head(values) * self.scale.view(4, 1)


def test_followed_nodes_have_the_modules_that_hooks_give_them(named, monkeypatch):
    torch.manual_seed(0)
    net = Positions().cuda()
    named(net=net)
    numbers = torch.arange(4, device="cuda")

    def modules():
        """Kernels with their module, in the order of each pass; gradients are accumulated."""
        with epprof_nb.profile() as prof, epprof_nb.op("step"):
            for _ in range(2):
                net(numbers).square().sum().backward()
        rows = prof.joined().sort_values("correlation_id")
        rows = rows[rows["kind"].isin(["kernel", "memcpy", "memset"])]
        assert prof.info["notes"] == []
        found = rows[["name", "module", "op_type"]].astype(object).fillna("")
        return sorted(map(tuple, found.to_numpy()))

    modules()
    assert backward_passes.can_follow([torch.ones(1, device="cuda")]) is False  # no profile
    followed = modules()
    monkeypatch.setattr(backward_passes, "can_follow", lambda _: False)
    assert followed == modules()
    assert {path for _, path, _ in followed} > {"net", "net.tokens", "net.head"}


def test_threads_that_train_at_once(named):
    """Both threads number their nodes from the same number on; one thread runs all nodes."""
    models = [Model().cuda() for _ in range(2)]
    named(first=models[0], second=models[1])
    values = torch.randn(8, 16, device="cuda")
    for net in models:
        warm_up(net, values)
    barrier = threading.Barrier(2)

    def train(net, label):
        for _ in range(5):
            barrier.wait()
            loss = work(net(values), label).sum()
            barrier.wait()
            loss.backward()

    with epprof_nb.profile() as prof:
        run_all(
            threading.Thread(target=train, args=pair)
            for pair in zip(models, ("first", "second"), strict=True)
        )
        torch.cuda.synchronize()
    found = modules_of_kernels(prof)
    for label, path in (("a", "first.0"), ("b", "twice"), ("c", "block.inner")):
        for way in ("forward", "backward"):
            assert found[f"{label}_{way}"] == {f"first.{path}", f"second.{path}"}
    counts = prof.by_module()["kernels"]
    for path in ("first.0", "twice", "block.inner"):
        assert counts[f"first.{path}"] == counts[f"second.{path}"]
    ops = prof.ops
    for name in ("first", "second"):
        of_model = ops[ops["name"] == name].set_index("op_type")
        passes = ops.loc[of_model.loc["backward", "parent_op_id"]]
        assert set(passes["name"]) == {"backward"}
        assert set(passes["thread_id"]) == set(of_model.loc["module", "thread_id"])
    assert prof.info["notes"] == []


def test_kernels_of_a_graph_replay_have_the_module_that_captured_them(model):
    net, values = model
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step(net, values)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with epprof_nb.profile() as captured, torch.cuda.graph(graph):
        step(net, values)
    assert captured.info["recorded"]["lost"] == {}
    with epprof_nb.profile() as prof, epprof_nb.op("replay"):
        for _ in range(4):
            graph.replay()
    replayed = prof.activities[prof.activities["graph_id"].notna()]
    assert len(replayed) % 4 == 0
    assert {op_path(prof, op)[0] for op in replayed["op_id"]} == {"replay"}
    assert modules_of_kernels(prof, "capture_op_id") == EXPECTED
    table = prof.by_module(attribution="capture")
    assert table.loc["model.twice", "backward_ns"] > 0
    assert table["self_device_ns"].sum() == replayed["duration_ns"].sum()


def test_distributed_data_parallel_leaves_the_paths_as_they_are(model, tmp_path, named):
    net, values = model
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_nccl_available()):
        pytest.skip("needs NCCL")
    distributed.init_process_group(
        "nccl", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1
    )
    try:
        wrapped = nn.parallel.DistributedDataParallel(net, device_ids=[0])
        named(wrapped=wrapped)
        step(wrapped, values)
        with epprof_nb.profile() as prof:
            step(wrapped, values)
    finally:
        distributed.destroy_process_group()
    paths = {
        name: {path.split(".", 1)[-1] for path in found if path}
        for name, found in modules_of_kernels(prof).items()
    }
    assert paths["a_forward"] == paths["a_backward"] == {"first.0"}
    assert paths["b_forward"] == paths["b_backward"] == {"twice"}


def test_modules_are_the_same_after_torch_profiler():
    """Another subscriber then holds CUPTI's callbacks."""
    program = """
        import json, sys, torch
        import epprof_nb
        from tests.gpu.torch.test_torch_modules import Model, step
        from tests.gpu.torch.torch_layers import modules_of_kernels, warm_up

        model = Model().cuda()
        values = torch.randn(8, 16, device="cuda")
        warm_up(model, values)
        with torch.profiler.profile():
            step(model, values)
            torch.cuda.synchronize()
        for _ in range(2):
            with epprof_nb.profile() as prof:
                for _ in range(3):
                    step(model, values)
        found = {name: list(paths) for name, paths in modules_of_kernels(prof).items()}
        print("RESULT", json.dumps([found, prof.info["notes"]]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found, notes = json.loads(done.stdout.rpartition("RESULT ")[2])
    assert any("callbacks are held" in note for note in notes)
    assert {name: set(paths) for name, paths in found.items()} == EXPECTED
