"""Every activity is attributed to the op that launched it, checked with uniquely named kernels."""

import threading

import numpy as np
import pytest

import epprof_nb

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
from tests.gpu.oracle import kernel, launch, pairs  # noqa: E402
from tests.helpers.threads import run_all  # noqa: E402


@pytest.fixture(autouse=True)
def warm():
    cupy.cuda.Device().synchronize()


def test_each_kernel_belongs_to_the_op_of_its_name():
    names = [f"op_{i}" for i in range(50)]
    for name in names:
        kernel(name)
    with epprof_nb.profile() as prof:
        for _ in range(20):
            for name in names:
                with epprof_nb.op(name):
                    launch(name)
    found = pairs(prof)
    assert len(found) == 1000
    assert all(k == o for k, o in found)
    assert prof.info["attribution"]["none"] == 0
    assert prof.info["recorded"]["lost"] == {}


def test_nested_ops_take_only_what_they_launch_themselves():
    with epprof_nb.profile() as prof:
        with epprof_nb.op("outer"):
            launch("outer")
            with epprof_nb.op("inner"):
                launch("inner")
            launch("outer")
        launch("nobody")
    assert pairs(prof) == [
        ("outer", "outer"),
        ("inner", "inner"),
        ("outer", "outer"),
        ("nobody", None),
    ]
    row = prof.by_op().set_index("name").loc["outer"]
    assert row["kernels"] == 3
    assert row["device_ns"] > row["self_device_ns"] > 0


def test_threads_and_streams_keep_their_own_stacks():
    names = [f"thread_{i}" for i in range(8)]
    for name in names:
        kernel(name)

    def work(name):
        with cupy.cuda.Stream(non_blocking=True), epprof_nb.op(name):
            for _ in range(200):
                launch(name)
            cupy.cuda.get_current_stream().synchronize()

    with epprof_nb.profile() as prof:
        run_all(threading.Thread(target=work, args=(name,)) for name in names)
    found = pairs(prof)
    assert len(found) == 1600
    assert all(k == o for k, o in found)
    assert prof.activities["stream_id"].nunique() >= 8


def test_copies_sets_and_waits_are_recorded_with_their_bytes():
    host = np.arange(1_000_000, dtype=np.float32)
    with epprof_nb.profile() as prof:
        with epprof_nb.op("up"):
            device = cupy.asarray(host)
        with epprof_nb.op("set"):
            cupy.cuda.runtime.memset(device.data.ptr, 0, 4096)
        with epprof_nb.op("down"):
            device.get()
        with epprof_nb.op("wait"):
            cupy.cuda.Device().synchronize()
    acts = prof.activities.join(prof.ops["name"].rename("op"), on="op_id")
    copies = acts[acts["kind"] == "memcpy"]
    assert copies["op"].tolist() == ["up", "down"]
    assert copies["bytes"].tolist() == [4_000_000, 4_000_000]
    assert copies["copy_kind"].tolist() == ["HtoD", "DtoH"]
    sets = acts[acts["kind"] == "memset"]
    assert sets["op"].tolist() == ["set"]
    assert sets["bytes"].tolist() == [4096]
    waits = acts[acts["kind"] == "synchronization"]
    assert "wait" in waits["op"].tolist()
    assert set(waits["device_id"]) == {0}
    up = prof.by_op().set_index("name").loc["up"]
    assert up["bytes"] == 4_000_000


def test_no_kernel_starts_before_its_launch():
    with epprof_nb.profile() as prof:
        for _ in range(2000):
            launch("early")
    calls = prof.api_calls.set_index("correlation_id")["start_ns"]
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    delay = kernels["start_ns"] - kernels["correlation_id"].map(calls)
    # CUPTI interpolates device time, so a kernel may appear to begin slightly too early.
    assert len(delay) == 2000
    assert delay.min() > -2_000
    assert prof.info["clock"]["cupti"] == "shared"


def test_nested_and_overlapping_profiles_each_see_exactly_their_slice():
    outer = epprof_nb.profile()
    first = outer.__enter__()
    launch("only_outer")
    with epprof_nb.profile() as inner:
        launch("both")
    other = epprof_nb.profile()
    second = other.__enter__()
    launch("overlap")
    outer.__exit__(None, None, None)
    launch("only_second")
    other.__exit__(None, None, None)
    assert [k for k, _ in pairs(first)] == ["only_outer", "both", "overlap"]
    assert [k for k, _ in pairs(inner)] == ["both"]
    assert [k for k, _ in pairs(second)] == ["overlap", "only_second"]


def test_work_in_flight_before_a_profile_is_not_in_it():
    launch("before", 20_000_000)
    with epprof_nb.profile() as prof:
        launch("inside")
    assert [k for k, _ in pairs(prof)] == ["inside"]


def test_the_hundredth_session_is_as_right_as_the_first():
    for i in range(100):
        with epprof_nb.profile() as prof, epprof_nb.op("again"):
            for _ in range(10):
                launch("again")
        assert pairs(prof) == [("again", "again")] * 10, i
    assert prof.info["clock"]["cupti"] == "shared"


def test_a_failed_launch_is_not_counted_as_lost():
    with epprof_nb.profile() as prof, epprof_nb.op("bad"):
        with pytest.raises(cupy.cuda.driver.CUDADriverError):
            kernel("too_big")((1,), (4096,), (1,))
        launch("good")
    assert prof.info["recorded"]["lost"] == {}
    assert (prof.api_calls["return_value"] != 0).sum() == 1


def test_every_call_is_there_with_detail_api():
    with epprof_nb.profile(detail="api") as prof, epprof_nb.op("calls"):
        cupy.cuda.runtime.getDevice()
        launch("calls")
    calls = prof.api_calls
    assert "cudaGetDevice_v3020" in calls["name"].tolist()
    assert set(calls["domain"]) == {"driver", "runtime"}
    op = prof.ops.index[prof.ops["name"] == "calls"][0]
    assert (calls["op_id"] == op).all()
    assert pairs(prof) == [("calls", "calls")]


def test_allocations_are_recorded_with_detail_memory():
    with epprof_nb.profile(detail="memory") as prof, epprof_nb.op("alloc"):
        block = cupy.cuda.runtime.malloc(1 << 20)
        cupy.cuda.runtime.free(block)
    memory = prof.memory
    assert memory["operation"].tolist() == ["allocation", "release"]
    assert memory["bytes"].tolist() == [1 << 20] * 2
    op = prof.ops.index[prof.ops["name"] == "alloc"][0]
    assert (memory["op_id"] == op).all()


def test_records_beyond_the_limit_are_counted_not_hidden():
    with epprof_nb.profile(max_records=100) as prof:
        for _ in range(500):
            launch("many")
    recorded = prof.info["recorded"]
    assert recorded["shown"]["kernel"] + recorded["lost"]["kernel"] == 500
    assert recorded["launched"]["kernel"] == 500
    assert recorded["shown"]["kernel"] <= 100
    assert any("max_records=" in note for note in prof.info["notes"])


def test_shown_and_lost_add_up_when_cupti_runs_out_of_buffers(monkeypatch):
    from epprof_nb.recording.cupti import buffer_limits

    monkeypatch.setattr(buffer_limits, "BUFFER_BYTES", 8192)
    monkeypatch.setattr(buffer_limits, "BUFFERS", 1)
    with epprof_nb.profile() as prof:
        for _ in range(5000):
            launch("flood", 1)
    recorded = prof.info["recorded"]
    shown, lost = recorded["shown"].get("kernel", 0), recorded["lost"].get("kernel", 0)
    assert shown + lost == 5000
    assert lost > 0


@pytest.fixture
def callbacks_held(monkeypatch):
    """CUPTI in the state in which another profiler holds its callbacks."""
    from epprof_nb import _native

    real = _native.cupti_start

    def refused(**options):
        started = real(**options)
        return (
            {**started, "subscribed": 0, "subscribe_result": 39}
            if options["callbacks"]
            else started
        )

    monkeypatch.setattr(_native, "cupti_start", refused)


@pytest.mark.usefixtures("callbacks_held")
def test_external_correlation_takes_over_where_callbacks_are_held():
    names = [f"ext_{i}" for i in range(10)]
    for name in names:
        kernel(name)
    with epprof_nb.profile() as prof:
        for name in names:
            with epprof_nb.op("around"), epprof_nb.op(name):
                launch(name)
    assert pairs(prof) == [(name, name) for name in names]
    assert any("MULTIPLE_SUBSCRIBERS" in note for note in prof.info["notes"])


@pytest.mark.usefixtures("callbacks_held")
def test_external_correlation_follows_ops_that_end_out_of_order():
    for name in ("first", "second", "nobody"):
        kernel(name)
    with epprof_nb.profile() as prof:
        first, second = epprof_nb.op("first"), epprof_nb.op("second")
        first.__enter__()
        launch("first")
        second.__enter__()
        launch("second")
        first.__exit__(None, None, None)
        launch("second")
        second.__exit__(None, None, None)
        launch("nobody")
    assert pairs(prof) == [
        ("first", "first"),
        ("second", "second"),
        ("second", "second"),
        ("nobody", None),
    ]


@pytest.mark.usefixtures("callbacks_held")
def test_external_correlation_follows_ops_of_suspended_generators():
    for name in ("inside", "around", "nobody"):
        kernel(name)

    def generator():
        with epprof_nb.op("inside"):
            launch("inside")
            yield
            launch("inside")

    with epprof_nb.profile() as prof:
        steps = generator()
        next(steps)
        launch("nobody")
        with epprof_nb.op("around"):
            launch("around")
            next(steps, None)
            launch("around")
        launch("nobody")
    assert pairs(prof) == [
        ("inside", "inside"),
        ("nobody", None),
        ("around", "around"),
        ("inside", "inside"),
        ("around", "around"),
        ("nobody", None),
    ]


@pytest.mark.usefixtures("callbacks_held")
def test_an_op_left_open_by_a_profile_is_in_no_later_one():
    left_open = epprof_nb.op("left open")
    with epprof_nb.profile():
        left_open.__enter__()
        launch("open")
    with epprof_nb.profile() as prof:
        launch("later")
    assert pairs(prof) == [("later", None)]
    assert prof.info["recorded"]["ops_lost"] == 0
    left_open.__exit__(None, None, None)
