"""DistributedDataParallel on two GPUs: the work of a step belongs to its modules and lines."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("cupy", reason="CuPy is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

PROGRAM = """
    import json, os
    import epprof_nb
    import torch
    from torch import distributed

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    import cupy
    cupy.cuda.Device(rank).use()
    from tests.gpu.oracle import op_path
    from tests.gpu.torch.test_torch_modules import Model, step
    from tests.gpu.torch.torch_layers import modules_of_kernels, warm_up

    distributed.init_process_group("nccl", rank=rank, world_size=2, init_method=os.environ["STORE"])
    model = Model().cuda()
    values = torch.randn(8, 16, device="cuda")
    warm_up(model, values)
    wrapped = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    for _ in range(3):
        step(wrapped, values)
    torch.cuda.synchronize()
    with epprof_nb.profile() as prof:
        for _ in range(2):
            step(wrapped, values)
    rows = prof.activities
    work = rows[rows["kind"].isin(["kernel", "memcpy", "memset"])]
    threads = {thread["thread_id"]: thread["name"] for thread in prof.info["threads"]}
    calls = prof.api_calls.drop_duplicates("correlation_id").set_index("correlation_id")
    lost = work[work["op_id"].isna()]
    collectives = work[work["name"].astype(str).str.startswith("nccl")]
    print("RESULT", json.dumps({
        "modules": {name: list(paths) for name, paths in modules_of_kernels(prof).items()},
        "collectives": [op_path(prof, op) for op in collectives["op_id"].dropna()],
        "without an op": [
            [str(name), *(
                (str(calls.loc[id, "name"]), threads.get(calls.loc[id, "thread_id"]))
                if id in calls.index else ()
            )]
            for name, id in zip(lost["name"], lost["correlation_id"])
        ],
        "attribution": prof.info["attribution"],
        "arguments": prof.ops["args"][prof.ops["op_type"] == "range"].dropna().map(dict).tolist(),
        "devices": sorted(set(rows["device_id"].dropna().astype(int))),
        "notes": prof.info["notes"],
    }))
    distributed.destroy_process_group()
"""


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """Results of both processes."""
    if torch.cuda.device_count() < 2 or not torch.distributed.is_nccl_available():
        pytest.skip("needs two GPUs and NCCL")
    store = tmp_path_factory.mktemp("ddp") / "store"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path), "STORE": f"file://{store}",
    }  # fmt: skip
    running = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment | {"RANK": str(rank)},
        )
        for rank in range(2)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0, 0], outputs
    return [json.loads(out.rpartition("RESULT ")[2].splitlines()[0]) for out, _ in outputs]


def test_modules_have_their_kernels(ranks):
    from tests.gpu.torch.test_torch_modules import EXPECTED

    expected = {
        name: [path and path.replace("model", "wrapped", 1) for path in paths]
        for name, paths in EXPECTED.items()
    }
    assert [found["modules"] for found in ranks] == [expected] * 2
    assert [found["notes"] for found in ranks] == [[], []]


def test_collectives_belong_to_the_step(ranks):
    for found in ranks:
        assert len(found["collectives"]) >= 2
        assert {path[-1] for path in found["collectives"]} == {"step"}


def test_collectives_have_communicator_and_size(ranks):
    for found in ranks:
        of_nccl = [args for args in found["arguments"] if args.get("domain") == "NCCL"]
        sizes = [args["Message size [bytes]"] for args in of_nccl if "Message size [bytes]" in args]
        assert len(sizes) >= 2
        assert min(sizes) > 0


def test_all_work_has_an_op(ranks):
    assert [found["without an op"] for found in ranks] == [[], []]
