"""Runs whose nodes are identified by their launches, on ONNX Runtime's CUDA provider."""

import threading
from collections import Counter

import numpy as np
import pytest
from onnx import TensorProto, helper

import epprof_nb
from epprof_nb.recording.onnxruntime import choice_of_runs
from epprof_nb.recording.onnxruntime.launch_sequences import LAUNCH
from tests.gpu import exported
from tests.gpu.cuda_provider import CUDA, LAUNCHES, ort, states
from tests.helpers.threads import run_all
from tests.ort import decoder, models
from tests.ort.cuda import bound
from tests.ort.rows import nested_in_time, nodes, runs

pytestmark = pytest.mark.usefixtures("observed_sessions")


def generate_on_gpu(session, steps):
    decoder.generate_bound(session, steps, "cuda")


def profiled(session, feeds, mode=None, before=None):
    """A profile of one run for each of `feeds`."""
    with epprof_nb.profile(ort_nodes=mode) as prof:
        for feed in feeds:
            if before:
                before()
            session.run(None, feed)
    return prof


def launches(prof):
    """Launches of each run in order, with the op of each launch, and its node or run."""
    ops = prof.ops
    acts = prof.activities
    acts = acts[acts["kind"].isin(LAUNCHES) & acts["op_id"].isin(ops.index)]
    event = acts["op_id"]
    for _ in range(8):  # libraries open NVTX ranges inside of nodes
        is_event = (ops["source"].reindex(event) == "onnxruntime").to_numpy()
        event = event.where(is_event, ops["parent_op_id"].reindex(event).to_numpy())
    acts = acts.assign(
        run=ops["run_id"].reindex(acts["op_id"]).to_numpy(),
        op=ops["name"].reindex(acts["op_id"]).astype(object).to_numpy(),
        node=ops["name"].reindex(event).astype(object).to_numpy(),
        index=ops["node_index"].reindex(event).to_numpy(),
    )
    acts = acts[acts["run"].notna()].sort_values(["correlation_id", "start_ns"])
    columns = ["kind", "name", "grid_x", "grid_y", "block_x", "bytes", "op", "node", "index"]
    values = acts[columns].astype(object).where(acts[columns].notna(), None)
    rows = zip(acts["run"], values.itertuples(index=False, name=None), strict=True)
    result = {}
    for run, row in rows:
        result.setdefault(int(run), []).append(row)
    return result


def assert_all_device_work_has_an_op(prof):
    acts = prof.activities
    without = acts[acts["op_id"].isna()]
    assert set(without["kind"]) <= {"synchronization"}, without[["kind", "name"]].value_counts()


def assert_same_nodes(learned, every):
    """Each learned run is, launch by launch and node by node, one that was recorded."""
    recorded = {tuple(run) for run in launches(every).values()}
    state = learned.by_run().set_index("run_id")["node_events"]
    found = launches(learned)
    wrong = [
        run
        for run, of_run in found.items()
        if state[run] in ("learned", "recorded") and tuple(of_run) not in recorded
    ]
    assert wrong == [], (len(wrong), len(found))


@pytest.mark.parametrize("name", ["bert", "resnet50"])
def test_nodes_of_further_runs_are_those_that_recording_gives(name):
    model, feeds = exported.get(name)
    session = ort.InferenceSession(model, providers=CUDA)
    every = profiled(session, feeds * 3, "every")
    learned = profiled(session, feeds * 50)
    assert states(learned) == {"learned": 48, "recorded": 2}
    assert_same_nodes(learned, every)
    again = profiled(session, feeds * 10)
    assert states(again) == {"learned": 10}
    assert_same_nodes(again, every)
    assert_all_device_work_has_an_op(again)
    assert nested_in_time(again)
    (history,) = getattr(session, choice_of_runs.ATTRIBUTE).histories()
    assert history.nbytes <= 64 * sum(len(key) // LAUNCH.itemsize for key in history.sequences)
    assert again.by_node().set_index("name").loc[:, "recorded"].max() == 0
    a, b = (p.by_node().set_index(["name", "node_index"])["kernels"] for p in (every, again))
    common = a.index.intersection(b.index)
    assert len(common) == len(a) == len(b)
    assert (a[common] * 10 == b[common] * 3).all()


def test_a_thousand_runs_of_four_threads_and_three_shapes():
    model, feeds = exported.get("bert", shapes=3)
    session = ort.InferenceSession(model, providers=CUDA)
    every = profiled(session, feeds * 3, "every")

    def work(number):
        for i in range(250):
            session.run(None, feeds[(i + number) % 3])

    with epprof_nb.profile() as prof:
        run_all(threading.Thread(target=work, args=(n,)) for n in range(4))
    found = states(prof)
    print(found, [n for n in prof.info["notes"] if "identified" in n or "launched" in n])
    assert sum(found.values()) == 1000
    assert found["learned"] >= 950
    # A thread's first run may set memory that later runs do not.
    recorded = {tuple(run) for run in launches(every).values()}
    recorded |= {
        tuple(launches(prof)[int(r)])
        for r in prof.by_run().query("node_events == 'recorded'")["run_id"]
    }
    state = prof.by_run().set_index("run_id")["node_events"]
    wrong = [
        r
        for r, of_run in launches(prof).items()
        if state[r] == "learned" and tuple(of_run) not in recorded
    ]
    assert wrong == []


@pytest.mark.parametrize("warmed", ["unprofiled", "profiled"])
def test_four_threads_that_begin_at_once(warmed):
    model, (feed, *_) = exported.get("bert", shapes=1)
    session = ort.InferenceSession(model, providers=CUDA)
    for _ in range(3):
        session.run(None, feed)
    if warmed == "profiled":
        profiled(session, [feed] * 4)
    barrier = threading.Barrier(4)

    def work():
        barrier.wait(60)
        for _ in range(25):
            session.run(None, feed)

    with epprof_nb.profile() as prof:
        run_all(threading.Thread(target=work) for _ in range(4))
    found = states(prof)
    print(found, prof.info["notes"])
    assert found["recorded"] + found["learned"] == 100
    assert found["learned"] >= 85


@pytest.mark.parametrize("ways", [decoder.generate, generate_on_gpu], ids=["run", "bound"])
def test_steps_of_a_generation_whose_inputs_grow(ways):
    """Their kernels differ with the size, and grids from step to step."""
    session = ort.InferenceSession(decoder.decoder(layers=3), providers=CUDA)
    steps = 120
    with epprof_nb.profile(ort_nodes="every") as every:
        ways(session, steps)
    with epprof_nb.profile() as first:
        ways(session, steps)
    with epprof_nb.profile() as second:
        ways(session, steps)
    print(states(first), states(second), first.info["notes"])
    print("".join(str(state)[0] for state in first.by_run()["node_events"]))
    print("".join(str(state)[0] for state in second.by_run()["node_events"]))
    recorded = {run: without_sizes(of_run) for run, of_run in launches(every).items()}
    for prof, most in ((first, 24), (second, 12)):
        assert states(prof)["recorded"] <= most
        assert states(prof)["mismatched"] <= 2
        state = prof.by_run()["node_events"].tolist()
        found = launches(prof)
        checked = 0
        for run, of_run in found.items():  # step by step, as it was recorded
            if state[run] == "learned":
                assert without_sizes(of_run) == recorded[run]
                checked += len(of_run)
        print(checked, "launches of learned runs")
        kernels = prof.activities[prof.activities["kind"] == "kernel"]
        assert kernels["op_id"].notna().all()  # unlike copies of bound values between the runs
        assert nested_in_time(prof)


def test_inputs_of_many_sizes():
    """Runs of the fifth size and further ones are compared by the names of kernels."""
    model, feeds = exported.get("bert", shapes=12)
    session = ort.InferenceSession(model, providers=CUDA)
    # The first run of a size may also clear memory that is new.
    every = profiled(session, feeds * 2, "every")
    recorded = [[] for _ in feeds]
    for run, of_run in launches(every).items():
        recorded[run % len(feeds)].append(without_sizes(of_run))
    prof = profiled(session, feeds * 4)
    state = prof.by_run()["node_events"].tolist()
    print("".join(str(each)[0] for each in state), prof.info["notes"])
    assert state.count("learned") >= 8  # of the first sizes at least
    for run, of_run in launches(prof).items():
        if state[run] == "learned":
            assert without_sizes(of_run) in recorded[run % len(feeds)]
    assert_all_device_work_has_an_op(prof)


def without_sizes(of_run):
    return [(*row[:2], *row[6:]) for row in of_run]


def nonzero():
    """NonZero: the shape of its output, and all later work, depends on the values."""
    make = helper.make_node
    graph = helper.make_graph(
        [make("NonZero", ["x"], ["at"], name="nonzero"),
         make("Cast", ["at"], ["f"], name="cast", to=TensorProto.FLOAT),
         make("Relu", ["f"], ["y"], name="relu")],
        "nonzero", [models.value("x", (64, 64))], [models.value("y", (2, None))],
    )  # fmt: skip
    return models.serialized(graph)


def test_work_that_depends_on_values_is_recorded_again_or_counted():
    session = ort.InferenceSession(nonzero(), providers=CUDA)
    full, half = np.ones((64, 64), np.float32), np.eye(64, dtype=np.float32)
    once = np.zeros((64, 64), np.float32)
    once[:20] = 1
    feeds = [{"x": full}] * 5 + [{"x": half}] * 5 + [{"x": full}, {"x": half}] * 5 + [{"x": once}]
    every = profiled(session, feeds, "every")
    prof = profiled(session, feeds)
    # The first run of the second kind is not recorded. The next one is, and explains it, too.
    assert states(prof) == {"recorded": 3, "learned": 17, "mismatched": 1}
    assert prof.info["onnxruntime_runs"][0]["mismatched"] == 1
    assert any("1 run launched other work" in note for note in prof.info["notes"])
    assert_same_nodes(prof, every)
    # The device work of a mismatched run belongs to the run only.
    state = prof.by_run().set_index("run_id")["node_events"]
    for run, of_run in launches(prof).items():
        if state[run] == "mismatched":
            assert {row[-2] for row in of_run} == {"model_run"}  # NVTX ranges of CUB, in row[-3]


def test_models_with_subgraphs_are_recorded_node_by_node():
    session = ort.InferenceSession(models.branching(), providers=CUDA)
    x = np.ones((2, 4), np.float32)
    feeds = [{"x": x, "flag": np.array(i % 3 == 0)} for i in range(20)]
    prof = profiled(session, feeds)
    assert states(prof) == {"recorded": 20}
    assert any("its model has subgraphs" in note for note in prof.info["notes"])
    taken = nodes(prof).astype({"name": str}).groupby("run_id")["name"].agg("|".join)
    assert ["then_add" in str(names) for names in taken] == [i % 3 == 0 for i in range(20)]


def test_other_work_on_the_same_thread_and_stream_is_not_taken_for_a_run():
    torch = pytest.importorskip("torch")
    session = ort.InferenceSession(models.chain(width=64), providers=CUDA)
    x = np.ones((32, 64), np.float32)
    y = torch.ones(64, 64, device="cuda")

    def beside():
        with epprof_nb.op("torch"):
            torch.relu(y @ y)

    one = profiled(session, [{"x": x}], "every").by_node().set_index("name")["kernels"]
    profiled(session, [{"x": x}] * 3)
    prof = profiled(session, [{"x": x}] * 20, before=beside)
    assert states(prof) == {"learned": 20}
    of_torch = prof.by_op().set_index("name").loc["torch"]
    assert of_torch["kernels"] >= 40
    per_node = prof.by_node().set_index("name")["kernels"]
    for name in ("first", "second", "third"):
        assert per_node[name] == 20 * one[name] > 0


@pytest.mark.parametrize(
    "change",
    [
        lambda launched, size: launched + launched[-size:],
        lambda launched, size: launched[:-size],
        lambda launched, size: launched[size : 2 * size] + launched[:size] + launched[2 * size :],
    ],
    ids=["more", "less", "swapped"],
)
def test_an_added_kernel_in_a_run_is_a_mismatch(change):
    """A run that launches one kernel more, one less, or in another order is not matched."""
    session = ort.InferenceSession(models.chain(width=64), providers=CUDA)
    x = np.ones((32, 64), np.float32)
    profiled(session, [{"x": x}] * 3)
    (history,) = getattr(session, choice_of_runs.ATTRIBUTE).histories()
    kept = dict(history.sequences)
    history.sequences = {change(key, LAUNCH.itemsize): value for key, value in kept.items()}
    prof = profiled(session, [{"x": x}])
    assert states(prof) == {"mismatched": 1}
    assert nodes(prof).empty
    assert (
        prof.activities["op_id"].isin(runs(prof).index)
        | (prof.activities["kind"] == "synchronization")
    ).all()
    history.sequences = kept
    profiled(session, [{"x": x}])  # recorded, because the last one was not matched
    assert states(profiled(session, [{"x": x}])) == {"learned": 1}


@pytest.mark.parametrize("way", ["run_with_iobinding", "run_with_ort_values"])
def test_other_ways_to_run(way):
    session = ort.InferenceSession(models.chain(width=64), providers=CUDA)
    x = np.ones((32, 64), np.float32)
    binding, _kept = bound(session, x)
    value = ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0)
    with epprof_nb.profile() as prof:
        for _ in range(20):
            if way == "run_with_iobinding":
                session.run_with_iobinding(binding)
            else:
                session.run_with_ort_values(["t2"], {"x": value})
    assert states(prof)["learned"] >= 17
    assert states(prof)["mismatched"] == 0
    assert set(prof.by_node().query("kernels > 0")["name"]) == {"first", "second", "third"}


def test_graphs_are_replayed_as_before():
    providers = [("CUDAExecutionProvider", {"enable_cuda_graph": "1"})]
    session = ort.InferenceSession(models.chain(width=64), providers=providers)
    binding, _kept = bound(session, np.ones((32, 64), np.float32))
    with epprof_nb.profile():
        for _ in range(3):
            session.run_with_iobinding(binding)
    with epprof_nb.profile() as prof:
        for _ in range(5):
            session.run_with_iobinding(binding)
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    assert kernels["capture_op_id"].notna().all()
    assert len(prof.by_run()) == 5


def test_a_profile_that_begins_and_ends_inside_a_run():
    model, (feed,) = exported.get("bert")
    session = ort.InferenceSession(model, providers=CUDA)
    profiled(session, [feed] * 5)
    stop = threading.Event()
    ended = threading.Semaphore(0)

    def work():
        while not stop.is_set():
            session.run(None, feed)
            ended.release()

    thread = threading.Thread(target=work)
    thread.start()
    found = Counter()
    try:
        for _ in range(30):
            with epprof_nb.profile() as prof:
                while ended.acquire(blocking=False):
                    pass
                for _ in range(4):  # of them, three began in the profile
                    ended.acquire()
            found += states(prof)
            assert_every_learned_run_is_whole(prof)
    finally:
        stop.set()
        thread.join()
    print(found)
    assert found["learned"] >= 60
    assert found["mismatched"] + found["recorded"] <= 4  # the first runs of the thread


def assert_every_learned_run_is_whole(prof):
    state = prof.by_run().set_index("run_id")["node_events"]
    of_runs = launches(prof)
    sizes = {len(of_runs[int(run)]) for run in state.index[state == "learned"]}
    assert len(sizes) <= 1


def test_off_records_runs_only():
    session = ort.InferenceSession(models.chain(), providers=CUDA)
    prof = profiled(session, [{"x": np.ones((2, 4), np.float32)}] * 5, "off")
    assert states(prof) == {"not recorded": 5}
    assert nodes(prof).empty
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    assert kernels["op_id"].isin(runs(prof).index).all()
