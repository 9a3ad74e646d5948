"""Operators of PyTorch on a GPU, through NVTX, compared with torch.profiler's."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

import epprof_nb

pytest.importorskip("cupy", reason="CuPy is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from tests.gpu.oracle import device_ns, launch, op_path  # noqa: E402
from tests.gpu.torch.torch_layers import launch_on_torchs_stream  # noqa: E402

HEAD = """
    import collections, json
    import epprof_nb
    import torch
    from torch import nn

    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Linear(32, 64), layer, nn.Conv1d(16, 8, 3)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    values = torch.randn(4, 16, 32)

    def step():
        model(values.cuda()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
"""


def in_a_process(code):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(HEAD) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        # With several devices, operators have no shapes.
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "CUDA_VISIBLE_DEVICES": "0"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.rpartition("RESULT ")[2])


def test_operators_have_the_kernels_that_torchs_own_profiler_gives_them():
    ours, theirs = in_a_process("""
        from torch.profiler import ProfilerActivity, profile

        def ours(detail):
            found = collections.Counter()
            with epprof_nb.profile(detail=detail) as prof:
                for _ in range(3):
                    step()
            assert prof.info["notes"] == [], prof.info["notes"]
            ops = prof.ops
            of_torch = (ops["category"] == "operator").to_dict()
            parents = ops["parent_op_id"].fillna(0).astype(int).to_dict()
            work = prof.activities
            for op in work["op_id"][work["kind"].isin(["kernel", "memcpy", "memset"])].fillna(0):
                while op and not of_torch[op]:
                    op = parents[op]
                found[ops["name"].get(op, "(no operator)")] += 1
            return found

        found = [ours("operators"), ours("shapes")]
        # It keeps CUPTI's callbacks, so it comes last.
        theirs = collections.Counter()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
            for _ in range(3):
                step()
            torch.cuda.synchronize()
        for event in prof.events():
            if event.name != "Activity Buffer Request":  # work of Kineto, and no operator
                theirs[event.name] += len(event.kernels)
        print("RESULT", json.dumps([found, +theirs]))
    """)
    for found in ours:
        names = found.keys() | theirs.keys()
        counts = {name: (found.get(name, 0), theirs.get(name, 0)) for name in names}
        assert {name: both for name, both in counts.items() if both[0] != both[1]} == {}


def test_a_kernel_belongs_to_its_operator_and_its_module():
    launch("of_double")
    with torch.library._scoped_library("epprof_test", "DEF") as library:
        library.define("double(Tensor x) -> Tensor")

        def double(x):
            launch_on_torchs_stream("of_double")
            return x * 2

        library.impl("double", double, "CUDA")

        class Doubled(torch.nn.Module):
            def forward(self, x):
                return torch.ops.epprof_test.double(x)

        module = Doubled()
        x = torch.ones(4, 8, device="cuda")
        module(x)
        has_shapes = torch.cuda.device_count() == 1
        with epprof_nb.profile(detail="shapes" if has_shapes else "operators") as prof:
            module(x)
    names = prof.activities["name"].astype(str)
    (op,) = prof.activities["op_id"][names == "of_double"]
    assert op_path(prof, op) == ["epprof_test::double", "Doubled"]
    if has_shapes:
        assert prof.ops.loc[op, "input_shapes"] == "[4,8]"
    assert prof.info["notes"] == []


def test_nodes_of_the_backward_pass_are_ops_on_autograds_thread():
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU()).cuda()
    x = torch.randn(4, 16, device="cuda")
    model(x).sum().backward()
    with epprof_nb.profile(detail="operators") as prof:
        model(x).sum().backward()
    ops = prof.ops
    nodes = ops[ops["op_type"] == "autograd_node"]
    assert set(nodes["name"]) >= {"AddmmBackward0", "GeluBackward0", "SumBackward0"}
    gelu = nodes.index[nodes["name"] == "GeluBackward0"]
    assert op_path(prof, gelu[0])[1:3] == ["Sequential.1", "Sequential"]
    frame = prof.by_operator().set_index("name")
    assert frame.loc["aten::gelu", "backward_ns"] == frame.loc["GeluBackward0", "device_ns"] > 0
    assert frame["self_device_ns"].sum() == device_ns(prof)
