"""PyTorch: eager, backward on autograd's threads, CUDA graphs."""

import pytest

import epprof_nb

pytest.importorskip("cupy", reason="CuPy is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from tests.gpu.oracle import op_path  # noqa: E402
from tests.gpu.torch.models import small  # noqa: E402


@pytest.fixture
def model():
    return small()


def test_forward_and_optimizer_work_belongs_to_their_ops(model):
    net, x = model
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with epprof_nb.profile() as prof:
        with epprof_nb.op("forward"):
            loss = net(x).sum()
        with epprof_nb.op("step"):
            optimizer.step()
    assert prof.info["attribution"]["none"] == 0
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    found = {tuple(op_path(prof, op)) for op in kernels["op_id"]}
    # `sum` runs in no module.
    layers = {(f"Sequential.{i}", "Sequential", "forward") for i in range(3)}
    assert found == {*layers, ("forward",), ("SGD.step", "step")}
    assert float(loss) == float(loss)


def test_backward_on_autograds_threads_belongs_to_the_statement_that_waits(model):
    net, x = model
    with epprof_nb.profile(frameworks=[]) as prof:
        with epprof_nb.op("forward"):
            loss = net(x).sum()
        with epprof_nb.op("backward"):
            loss.backward()
    acts = prof.activities[prof.activities["kind"] == "kernel"]
    by_cell = acts[acts["attribution"] == "cell"]
    assert len(by_cell) > 3
    assert by_cell["thread_id"].nunique() == 1
    names = prof.ops["name"]
    assert {names[op] for op in by_cell["op_id"]} == {"backward"}
    assert prof.info["attribution"]["none"] == 0


def test_backward_on_autograds_threads_belongs_to_the_modules(model):
    net, x = model
    with epprof_nb.profile() as prof, epprof_nb.op("mine"):
        net(x).sum().backward()
    acts = prof.activities[prof.activities["kind"] == "kernel"]
    main = prof.ops["thread_id"].iloc[0]
    backward = acts[acts["thread_id"] != main]
    assert backward["thread_id"].nunique() == 1
    assert set(backward["attribution"]) == {"stack"}
    paths = {tuple(op_path(prof, op)) for op in backward["op_id"]}
    outer = ("Sequential", "backward", "mine")
    assert paths == {(f"Sequential.{i}", *outer) for i in range(3)}


def test_a_thread_that_works_beside_the_statement_is_nobodys(model):
    import threading
    import time

    net, x = model
    stop = threading.Event()

    def beside():
        with torch.no_grad():
            while not stop.is_set():
                net(x)

    thread = threading.Thread(target=beside)
    with epprof_nb.profile(frameworks=[]) as prof:  # modules are ops of that thread
        thread.start()
        with epprof_nb.op("busy"):
            end = time.perf_counter() + 0.3
            while time.perf_counter() < end:
                sum(range(1000))
        stop.set()
        thread.join()
    assert prof.info["attribution"]["cell"] == 0
    assert prof.info["attribution"]["none"] > 0


def test_kernels_of_a_graph_replay_know_the_op_that_captured_them(model):
    net, x = model
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            net(x)
    torch.cuda.synchronize()
    alone = {"frameworks": []}  # the ops are those of the cell
    with epprof_nb.profile(**alone) as captured, torch.no_grad(), torch.cuda.graph(graph):
        with epprof_nb.op("first"):
            y = net[0](x)
        with epprof_nb.op("second"):
            net[1](y)
    assert captured.info["recorded"]["lost"] == {}
    with epprof_nb.profile(**alone) as prof, epprof_nb.op("replay"):
        for _ in range(5):
            graph.replay()
    acts = prof.activities[prof.activities["graph_id"].notna()]
    assert len(acts)
    assert len(acts) % 5 == 0
    ops = prof.ops
    assert {ops.loc[o, "name"] for o in acts["op_id"]} == {"replay"}
    assert acts["capture_op_id"].notna().all()
    assert {ops.loc[o, "name"] for o in acts["capture_op_id"]} == {"first", "second"}
    earlier = ops[ops["status"] == "earlier"]
    assert set(earlier["name"]) == {"first", "second"}
    table = prof.graphs
    assert table["replays"].tolist() == [5]
    assert table["device_ns"].sum() == acts["duration_ns"].sum()
    launch, capture = prof.by_op(), prof.by_op(attribution="capture")
    assert launch.set_index("name").loc["replay", "self_device_ns"] == acts["duration_ns"].sum()
    by_capture = capture.set_index("name")["self_device_ns"]
    assert by_capture["first"] + by_capture["second"] == acts["duration_ns"].sum()


def test_a_profile_inside_a_capture_does_not_break_the_capture(model):
    net, x = model
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph), epprof_nb.profile():
        net(x)
    graph.replay()
    torch.cuda.synchronize()


def test_a_training_step_in_full(model):
    net, x = model
    optimizer = torch.optim.Adam(net.parameters())

    def step():
        with epprof_nb.op("zero"):
            optimizer.zero_grad(set_to_none=False)
        with epprof_nb.op("forward"):
            loss = torch.nn.functional.mse_loss(net(x), x)
        with epprof_nb.op("backward"):
            loss.backward()
        with epprof_nb.op("step"):
            optimizer.step()

    step()
    with epprof_nb.profile() as prof:
        for i in range(10):
            with epprof_nb.op("iteration", i=i):
                step()
    assert prof.info["attribution"]["none"] == 0
    for op_id in prof.activities["op_id"].unique():
        assert op_path(prof, int(op_id))[-1] == "iteration"
