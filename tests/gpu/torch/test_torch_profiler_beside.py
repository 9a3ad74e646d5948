"""torch.profiler in the process of the tests, which run last: it keeps CUPTI's callbacks."""

import pytest

import epprof_nb
from epprof_nb.recording.delays.guarded_experiment import GuardedExperiment

pytest.importorskip("cupy", reason="CuPy is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from tests.gpu.oracle import pairs  # noqa: E402
from tests.gpu.torch.models import small  # noqa: E402


@pytest.fixture
def model():
    return small()


def _torch_profile(net, x):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as theirs:
        for _ in range(5):
            net(x)
        torch.cuda.synchronize()
    return theirs


def _gpu_events_nest(theirs):
    """Whether its kernels lie within the time range of its CPU events (with drain time)."""
    events = theirs.events()
    gpu = [e for e in events if e.device_type.name == "CUDA"]
    cpu = [e for e in events if e.device_type.name == "CPU"]
    assert gpu, "torch.profiler recorded no kernel"
    first, last = min(e.time_range.start for e in cpu), max(e.time_range.end for e in cpu)
    return all(first - 50 <= e.time_range.start and e.time_range.end <= last + 50 for e in gpu)


def test_torch_profiler_before_between_and_after_ours(model):
    net, x = model
    for _ in range(2):
        with epprof_nb.profile(frameworks=[]) as ours, epprof_nb.op("ours"):
            net(x)
        assert {op for _, op in pairs(ours)} == {"ours"}
        assert len(pairs(ours)) >= 3
        calls = ours.api_calls.set_index("correlation_id")["start_ns"]
        acts = ours.activities[ours.activities["kind"] == "kernel"]
        assert (acts["start_ns"] - acts["correlation_id"].map(calls)).min() > -5_000
        assert _gpu_events_nest(_torch_profile(net, x))


def test_an_active_torch_profiler_is_named_and_the_code_runs(model):
    net, x = model
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as theirs:
        with epprof_nb.profile() as ours, epprof_nb.op("inside"):
            y = net(x)
        torch.cuda.synchronize()
    assert y.shape == (64, 256)
    assert any("torch.profiler" in note for note in ours.info["notes"])
    layers = [f"Sequential.{i}" for i in range(3)]
    assert ours.ops["name"].tolist() == ["inside", "Sequential", *layers]
    assert any(e.device_type.name == "CUDA" for e in theirs.events())


def test_code_with_torch_profiler_is_no_experiment(model):
    net, x = model
    said = []
    experiment = GuardedExperiment(16, said.append, has_bar=False)
    experiment.prepare()
    with epprof_nb.profile() as prof, epprof_nb.op("inside"):
        net(x)
        assert _gpu_events_nest(_torch_profile(net, x))
    experiment.begin(prof)
    assert not experiment.next()
    assert "another profiler uses CUPTI" in said[0]
    assert _gpu_events_nest(_torch_profile(net, x))
