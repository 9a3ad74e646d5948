"""Experiments on a GPU: delays are where and as long as ordered, and tell who is waited for."""

import statistics

import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.experiments.ops_to_delay import Factor, delayed_ops
from epprof_nb.core.errors import ExperimentError
from epprof_nb.recording.delays.cuda import CudaDelays
from epprof_nb.recording.delays.delays_at_op_ends import OpEnds
from epprof_nb.recording.delays.guarded_experiment import GuardedExperiment
from epprof_nb.recording.delays.spins import spin_on_host

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
from tests.gpu.oracle import kernel, launch  # noqa: E402

US = 1_000
LONG, SHORT = 20_000_000, 400_000  # cycles


@pytest.fixture
def streams():
    kernel("work")
    launch("work")
    cupy.cuda.Device().synchronize()
    return [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]


@pytest.fixture
def learned():
    """Record a step; returns the delays, and the ops by name."""

    def learn(step):
        _native.follow_streams(True)
        with epprof_nb.profile() as prof:
            step()
            cupy.cuda.Device().synchronize()
        delays = CudaDelays()
        return delays, {op.name: op for op in delayed_ops(ProfileIndex(prof), 1, delays)}

    yield learn
    _native.follow_streams(False)


@pytest.fixture
def ends(learned):
    """Delay ops of a step on the device."""
    made = []

    def begin(step):
        delays, ops = learned(step)
        factors = [Factor(name, "device") for name in ops]
        made.append(
            OpEnds(factors, delays, spin_on_host, {o.name: o.streams[0] for o in ops.values()})
        )
        made[0].install()
        return made[0]

    yield begin
    for one in made:
        one.remove()


def on(stream, name, cycles=SHORT):
    with stream, epprof_nb.op(name):
        launch("work", cycles)


def elapsed_us(stream, delay):
    """Time on the device between two events around a call, which waits behind a kernel."""
    first, last = cupy.cuda.Event(), cupy.cuda.Event()
    with stream:
        launch("work", SHORT)
    first.record(stream)
    delay()
    last.record(stream)
    _native.wait_for_delays()
    return cupy.cuda.get_elapsed_time(first, last) * 1e3


@pytest.mark.parametrize("which", ["own", "default"])
def test_a_delay_is_as_long_as_it_measures(learned, streams, which):
    stream = streams[0] if which == "own" else cupy.cuda.Stream.null
    delays, ops = learned(lambda: on(stream, "op"))
    delays.begin({"op": ops["op"].streams[0]})
    found = {}
    for us in (0, 20, 500):
        rounds = [elapsed_us(stream, lambda: delays.delay("op", 0, us * US)) for _ in range(20)]  # noqa: B023
        measured = [ns / US for _, ns in delays.take()]
        assert len(measured) == 20
        assert min(measured) >= us
        found[us] = statistics.median(rounds), statistics.median(measured)
    delays.end()
    for us in (20, 500):
        longer = [long - zero for long, zero in zip(found[us], found[0], strict=True)]
        assert longer[1] == pytest.approx(us, rel=0.05, abs=2)
        assert longer[0] == pytest.approx(longer[1], rel=0.05, abs=2)


def two_chains(streams):
    on(streams[0], "waited", LONG)
    on(streams[1], "hidden", LONG // 4)
    for stream in streams:
        stream.synchronize()


def test_an_experiment_tells_the_op_that_is_waited_for(streams):
    for _ in range(3):
        two_chains(streams)
    experiment = GuardedExperiment(40, print, has_bar=False)
    experiment.prepare()
    with epprof_nb.profile() as prof:
        two_chains(streams)
    experiment.begin(prof)
    while experiment.next():
        two_chains(streams)
    assert prof.info["experiment"]["refused"] == ""
    found = prof.sensitivity().set_index("name")
    assert found.loc["waited", "device_sensitivity"] == pytest.approx(1, abs=0.3)
    assert found.loc["hidden", "device_sensitivity"] == pytest.approx(0, abs=0.3)


def test_delays_are_no_part_of_a_recording(ends, streams):
    made = ends(lambda: on(streams[0], "op"))
    made.begin_repeat([{0: 50 * US}])
    with epprof_nb.profile() as prof:
        on(streams[0], "op")
    assert made.end_repeat()[0] >= 50 * US
    assert prof.activities.loc[prof.activities["kind"] == "kernel", "name"].tolist() == ["work"]


def test_nothing_is_launched_into_a_capture(ends, streams):
    made = ends(lambda: on(streams[0], "op"))
    made.begin_repeat([{0: 50 * US}])
    streams[0].begin_capture()
    on(streams[0], "op")
    graph = streams[0].end_capture()
    assert made.end_repeat() == [0]
    with epprof_nb.profile() as prof:
        graph.launch(streams[0])
        streams[0].synchronize()
    assert prof.activities.loc[prof.activities["kind"] == "kernel", "name"].tolist() == ["work"]


def test_a_replay_is_delayed_as_a_whole(learned, streams):
    streams[0].begin_capture()
    with streams[0]:
        for _ in range(3):
            launch("work", SHORT)
    graph = streams[0].end_capture()
    graph.launch(streams[1])
    cupy.cuda.Device().synchronize()

    def step():
        with epprof_nb.op("replay"):
            graph.launch(streams[1])

    _, ops = learned(step)
    assert ops["replay"].uncovered == ""
    assert ops["replay"].launching.tolist() == [0]


def test_a_stream_that_is_destroyed_before_its_delay(ends, streams):
    made = ends(lambda: on(streams[0], "op"))
    streams.clear()
    made.begin_repeat([{0: 0}])
    with epprof_nb.op("op"):
        pass
    with pytest.raises(ExperimentError, match="its stream was destroyed"):
        made.end_repeat()


def test_a_stream_that_the_code_creates(learned):
    kept = []

    def step():
        kept.append(cupy.cuda.Stream(non_blocking=True))
        on(kept[0], "op")

    assert "the code creates its stream" in learned(step)[1]["op"].uncovered


def test_streams_of_torch(ends):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch without CUDA")
    x, side = torch.ones(1 << 20, device="cuda"), torch.cuda.Stream()

    def step():
        with epprof_nb.op("main"):
            x.add(1)
        with torch.cuda.stream(side), epprof_nb.op("side"):
            x.add(1)

    step()
    made = ends(step)
    made.begin_repeat([{0: 50 * US}, {0: 80 * US}])
    step()
    lengths = dict(zip((factor.op for factor in made.factors), made.end_repeat(), strict=True))
    assert all(ns >= 50 * US for ns in lengths.values())
    assert sorted(lengths) == ["main", "side"]
