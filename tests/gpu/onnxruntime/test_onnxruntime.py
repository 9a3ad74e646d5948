"""ONNX Runtime's CUDA provider on the released wheel: kernels and copies of each node."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import epprof_nb
from epprof_nb.recording.onnxruntime import sessions

pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", minversion="1.25", reason="onnxruntime is not installed")
if "CUDAExecutionProvider" not in ort.get_available_providers():
    pytest.skip("onnxruntime-gpu is not installed", allow_module_level=True)

from tests.helpers.threads import run_all  # noqa: E402
from tests.ort import models  # noqa: E402
from tests.ort.cuda import bound  # noqa: E402
from tests.ort.rows import nodes  # noqa: E402

CUDA = ["CUDAExecutionProvider", "CPUExecutionProvider"]


@pytest.fixture(autouse=True)
def installed():
    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    epprof_nb.onnxruntime.install(nodes="every")
    yield
    epprof_nb.onnxruntime.uninstall()
    sessions.set_default_mode("auto")


@pytest.fixture
def x():
    return np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32)


def kernels(prof):
    acts = prof.activities
    return acts[acts["kind"] == "kernel"]


def test_the_session_is_the_same_with_the_observer(x):
    session = ort.InferenceSession(models.chain(), providers=CUDA)
    assert session.get_providers() == CUDA
    epprof_nb.onnxruntime.uninstall()
    plain = ort.InferenceSession(models.chain(), providers=CUDA)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], plain.run(None, {"x": x})[0])
    default = ort.InferenceSession(models.chain()).get_providers()
    epprof_nb.onnxruntime.install()
    assert ort.InferenceSession(models.chain()).get_providers() == default


def test_every_kernel_and_copy_belongs_to_an_event_of_its_run(x):
    session = ort.InferenceSession(models.chain(), providers=CUDA)
    session.run(None, {"x": x})
    with epprof_nb.profile() as prof:
        for _ in range(10):
            session.run(None, {"x": x})
    found = nodes(prof)
    on_gpu = found[found["provider"] == "CUDAExecutionProvider"]
    assert len(on_gpu) == 30
    launched = kernels(prof)
    assert len(launched) >= 30
    assert (launched["attribution"] == "stack").all()
    # Each node launched its own kernel in each run.
    assert set(on_gpu.index) <= set(launched["op_id"])
    runs = prof.ops["run_id"].reindex(launched["op_id"])
    assert set(runs) == set(range(10))
    table = prof.by_node()
    assert table["self_device_ns"].sum() == int(
        prof.activities.loc[
            prof.activities["kind"].isin(["kernel", "memcpy", "memset"]), "duration_ns"
        ].sum()
    )
    assert (prof.by_run()["kernels"] >= 3).all()
    assert (prof.by_run()["memcpys"] >= 2).all()


def test_threads_that_share_a_session_keep_their_kernels_apart(x):
    session = ort.InferenceSession(models.chain(), providers=CUDA)
    session.run(None, {"x": x})

    def work():
        for _ in range(50):
            session.run(None, {"x": x})

    with epprof_nb.profile() as prof:
        run_all(threading.Thread(target=work) for _ in range(4))
    by_run = prof.by_run()
    assert len(by_run) == 200
    assert by_run["kernels"].nunique() == 1
    work_done = prof.activities["kind"].isin(["kernel", "memcpy", "memset"])
    assert (prof.activities.loc[work_done, "attribution"] == "stack").all()


def test_a_session_profile_has_the_kernels(x, tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    session = ort.InferenceSession(models.chain(), options, providers=CUDA)
    for _ in range(5):
        session.run(None, {"x": x})
    events = json.loads(Path(session.end_profiling()).read_text())
    by_name = {}
    for event in events:
        if event["cat"] == "Node":
            by_name.setdefault(event["name"].removesuffix("_kernel_time"), []).append(event)
    kernels = [e for e in events if e["cat"] == "Kernel"]
    found = [e for e in kernels if e["args"]["grid_x"] != "-1"]
    assert len(found) >= 15
    assert {"Relu", "MatMul", "Sigmoid"} <= {e["args"]["op_name"] for e in found}
    for event in found:
        assert {"stream", "block_z", "parent_name"} <= set(event["args"])
    of_first = sorted(
        (e for e in found if e["args"]["parent_name"] == "first"), key=lambda e: e["ts"]
    )
    calls = {e["args"]["correlation_id"]: e for e in events if e["cat"] == "Api"}
    # The call lies inside its node, apart from the rounding to microseconds. The kernel of an idle
    # device starts there or at once after it.
    for kernel, node in zip(of_first, by_name["first"], strict=False):
        call, end = calls[kernel["args"]["correlation_id"]], node["ts"] + node["dur"]
        assert node["ts"] - 1 <= call["ts"]
        assert call["ts"] + call["dur"] <= end + 1
        assert node["ts"] - 1 <= kernel["ts"] < end + 10_000


def test_kernels_of_a_replay_know_the_node_that_captured_them(x):
    session = ort.InferenceSession(
        models.chain(), providers=[("CUDAExecutionProvider", {"enable_cuda_graph": "1"})]
    )
    binding, _keep = bound(session, x)
    with epprof_nb.profile() as first:
        session.run_with_iobinding(binding)
    assert {"first", "second", "third"} <= set(nodes(first)["name"])
    with epprof_nb.profile() as prof:
        for _ in range(5):
            session.run_with_iobinding(binding)
    launched = kernels(prof)
    replayed = launched[launched["graph_id"].notna()]
    assert len(replayed) >= 15
    assert replayed["capture_op_id"].notna().all()
    names = prof.ops["name"].reindex(replayed["capture_op_id"])
    assert {"first", "second", "third"} <= set(names)
    assert set(prof.ops["name"].reindex(replayed["op_id"])) == {"model_run"}
    by_capture = prof.by_node(attribution="capture").set_index("name")
    assert (by_capture.loc[["first", "second", "third"], "device_ns"] > 0).all()


def graph_session():
    return ort.InferenceSession(
        models.chain(), providers=[("CUDAExecutionProvider", {"enable_cuda_graph": "1"})]
    )


def replays_of(prof):
    """Replayed kernels with the names of the run and of the node that captured them."""
    launched = kernels(prof)
    replayed = launched[launched["graph_id"].notna()]
    name = prof.ops["name"]
    return replayed.assign(
        run=name.reindex(replayed["op_id"]).to_numpy(),
        node=name.reindex(replayed["capture_op_id"]).to_numpy(),
        run_id=prof.ops["run_id"].reindex(replayed["op_id"]).to_numpy(),
    )


def test_several_graphs_of_a_session_are_told_apart(x):
    session = graph_session()
    inputs = {"1": x, "2": x[:16], "3": x[:1]}
    bindings = {key: bound(session, rows) for key, rows in inputs.items()}
    options = {}
    for key in inputs:
        options[key] = ort.RunOptions()
        options[key].add_run_config_entry("gpu_graph_id", key)

    def turn():
        for key, (binding, _keep) in bindings.items():
            session.run_with_iobinding(binding, options[key])

    with epprof_nb.profile():
        turn()
    for _ in range(3):  # profiled, then known to be replays
        with epprof_nb.profile() as prof:
            turn()
            turn()
        found = replays_of(prof)
        assert set(found["run"]) == {"model_run"}
        assert set(found["node"]) == {"first", "second", "third"}
        assert found["graph_id"].nunique() == 3
        assert found.groupby("run_id")["graph_id"].nunique().tolist() == [1] * 6
        assert len(prof.by_run()) == 6


def test_threads_capture_and_replay_each_their_own(x):
    session_of = [graph_session() for _ in range(3)]
    bindings = [bound(session, x) for session in session_of]
    ready, capturing = threading.Barrier(3), threading.Lock()

    def work(i, times):
        ready.wait()
        # A thread's first run creates its cuBLAS handle, which fails while another one captures.
        with capturing:
            session_of[i].run_with_iobinding(bindings[i][0])
        for _ in range(times - 1):
            session_of[i].run_with_iobinding(bindings[i][0])

    def together(times):
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(work, range(3), [times] * 3))

    with epprof_nb.profile() as first:
        together(2)
    assert replays_of(first)["node"].notna().all()
    with epprof_nb.profile() as prof:
        together(4)
    found = replays_of(prof)
    # These are new threads: each captures again, which a run's profiler does not see.
    assert set(found["run"]) == {"model_run"}
    assert len(prof.by_run()) == 12
    assert found.groupby("run_id")["thread_id"].nunique().max() == 1


def test_a_later_capture_is_attributed_to_its_run(x):
    session = graph_session()
    binding, _keep = bound(session, x)
    with epprof_nb.profile():
        session.run_with_iobinding(binding)
    other = ort.RunOptions()
    other.add_run_config_entry("gpu_graph_id", "5")
    second, _keep2 = bound(session, x[:8])
    with epprof_nb.profile() as prof:
        session.run_with_iobinding(second, other)
        session.run_with_iobinding(second, other)
    found = replays_of(prof)
    assert len(found) >= 3
    assert set(found["run"]) == {"model_run"}


def test_a_profile_of_one_run_has_the_kernels_of_that_run(x, tmp_path):
    session = ort.InferenceSession(models.chain(), providers=CUDA)
    session.run(None, {"x": x})
    options = ort.RunOptions()
    epprof_nb.onnxruntime.enable_profiling(options, profile_file_prefix=str(tmp_path / "run"))
    run_all(threading.Thread(target=session.run, args=(None, {"x": x}, options)) for _ in range(4))
    files = list(tmp_path.glob("run*.json"))
    assert len(files) == 4
    for path in files:
        events = json.loads(path.read_text())
        kernels = [e for e in events if e["cat"] == "Kernel"]
        found = [e for e in kernels if e["args"]["grid_x"] != "-1"]
        assert {"first", "second", "third"} <= {e["args"]["parent_name"] for e in found}
        (run,) = (e for e in events if e["name"] == "model_run")
        for event in found:
            assert run["ts"] - 20 <= event["ts"] <= run["ts"] + run["dur"] + 20


def test_the_arena_of_a_session_has_its_bytes(tmp_path):
    path = tmp_path / "arena.onnx"
    path.write_bytes(models.chain(width=256))
    session = ort.InferenceSession(str(path), providers=CUDA)
    x = np.ones((20_000, 256), np.float32)
    with epprof_nb.profile(detail="memory") as prof:
        session.run(None, {"x": x})
    pools = prof.memory_pools().set_index("pool")
    print(pools.to_string())
    row = pools.loc["ONNX Runtime arena.onnx"]
    assert row["held_bytes"] >= 2 * x.nbytes  # an input, and an output
    assert row["held_bytes"] >= row["in_use_bytes"] > 0  # the weight
    assert row["note"] == "at the end of the profile"
    # The driver gave the memory of the arena, which its row leaves out.
    assert "ONNX Runtime arena.onnx" in pools.loc["driver", "note"]
    assert pools.filter(like="ONNX Runtime", axis="index")["held_bytes"].notna().all()
