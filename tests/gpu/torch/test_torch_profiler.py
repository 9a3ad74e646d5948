"""torch.profiler before, between, inside and after our profiles, each in a separate process."""

import json
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("cupy", reason="CuPy is not installed")
pytest.importorskip("torch", reason="PyTorch is not installed")

PROGRAM = """
import collections, fcntl, json, os, sys, threading, time
import torch
import torch._dynamo  # else by the first step of the optimizer
import epprof_nb
from torch.profiler import ProfilerActivity

lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)  # one process at a time uses the GPU

torch.manual_seed(0)
layers = [m for _ in range(3) for m in (torch.nn.Linear(256, 256), torch.nn.GELU())]
net = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.AdamW(net.parameters())
x = torch.randn(64, 256, device="cuda")

def step():
    op = epprof_nb.op
    with op("zero"):
        optimizer.zero_grad(set_to_none=False)
    with op("forward"):
        loss = (net(x) - x).square().mean()
    with op("backward"):
        loss.backward()
    with op("optimizer"):
        optimizer.step()

def steps(n):
    for _ in range(n):
        step()
    torch.cuda.synchronize()

def ours(n=10):
    with epprof_nb.profile() as prof:
        steps(n)
    return prof

def theirs(n=3, activities=(ProfilerActivity.CPU, ProfilerActivity.CUDA)):
    with torch.profiler.profile(activities=activities) as prof:
        steps(n)
    events = prof.events()
    launches = [e for e in events if e.name.startswith("cudaLaunchKernel")]
    on_gpu = [e for e in events if e.device_type.name == "CUDA"]
    return {"on GPU": len(on_gpu), "launches": len(launches)}

def shares(prof):
    acts = prof.activities[prof.activities["kind"] != "synchronization"]
    op = prof.ops["name"].reindex(acts["op_id"]).astype(object).fillna("nobody")
    keys = zip(acts["kind"], op, acts["attribution"])
    counts = collections.Counter("/".join(map(str, key)) for key in keys)
    sizes = acts.groupby("op_id").size()
    per_op = collections.Counter(zip(prof.ops["name"].reindex(sizes.index).astype(str), sizes))
    return {
        "shares": dict(sorted(counts.items())),
        "per op": sorted([name, int(size), count] for (name, size), count in per_op.items()),
        "lost": prof.info["recorded"]["lost"],
        "dropped": prof.info["recorded"]["dropped"],
        "wall_ok": bool((acts["end_ns"] <= prof.info["wall_ns"] + 1_000_000).all()),
        "device_ns": int(acts["duration_ns"].sum()),
        "early": prof.info["plausibility"],
        "clock": prof.info["clock"]["cupti"],
        "notes": prof.info["notes"],
    }

steps(3)
result = {}
"""


BUSY = "a thread beside a busy cell"
PROCESSES = 4
"""Number of processes that start together; importing PyTorch takes longer than the scenarios."""


def run(scenario: str, lock: str, **environment: str) -> dict:
    # Without a call of CUDA after a teardown, the end of the process waits for ever.
    end = "\nprint('RESULT', json.dumps(result), flush=True)\nos._exit(0)\n"
    program = PROGRAM + textwrap.dedent(scenario) + end
    done = subprocess.run(
        [sys.executable, "-c", program, lock],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        timeout=300,
    )
    assert done.returncode == 0, (done.returncode, done.stdout[-1000:], done.stderr[-3000:])
    return json.loads(done.stdout.rpartition("RESULT ")[2])


@pytest.fixture(scope="module")
def result_of(request, tmp_path_factory):
    """A function that returns the result of a scenario, with or without a teardown of CUPTI.

    The processes of all selected tests start with the first one.
    """
    lock = str(tmp_path_factory.mktemp("gpu") / "lock")
    selected = [item for item in request.session.items if item.module is request.module]
    parameters = [getattr(item, "callspec", None) for item in selected]
    wanted = [("alone", "0"), ("theirs alone", "0")]
    wanted += [(p.params["name"], p.params["teardown"]) for p in parameters if p is not None]
    with ThreadPoolExecutor(PROCESSES) as pool:
        started = {}

        def start(name, teardown="0"):
            key = (name, teardown)
            if key not in started:
                started[key] = pool.submit(run, SCENARIOS[name], lock, TEARDOWN_CUPTI=teardown)
            return started[key]

        for key in wanted:
            start(*key)
        yield lambda *key: start(*key).result()


def assert_same(found: dict, fresh: dict, what: str) -> None:
    assert found["shares"] == fresh["shares"], (what, found)
    assert found["per op"] == fresh["per op"], (what, found)
    assert not any("nobody" in key for key in fresh["shares"])
    assert any(key.endswith("/cell") for key in fresh["shares"])
    assert found["lost"] == {}, what
    assert found["wall_ok"], what
    # The clock must not be distorted.
    assert fresh["device_ns"] / 3 < found["device_ns"] < fresh["device_ns"] * 3, (what, found)


SCENARIOS = {
    "alone": "result['ours'] = shares(ours())",
    "theirs alone": "result['theirs'] = theirs(); result['again'] = theirs()",
    "before": "result['theirs'] = theirs(); result['ours'] = shares(ours())",
    "twice before": """
        result['theirs'] = theirs()
        theirs()  # with TEARDOWN_CUPTI=1 it may lose records to the teardown of the first
        result['ours'] = shares(ours())
        result['ours, second'] = shares(ours())
    """,
    "between and after": """
        result['ours'] = shares(ours())
        result['theirs'] = theirs()
        result['ours, second'] = shares(ours())
        result['again'] = theirs()
        result['ours, third'] = shares(ours())
        result['ours, fourth'] = shares(ours())
    """,
    "inside": """
        with epprof_nb.profile() as prof:
            steps(4)
            result['theirs'] = theirs()
            steps(6)
        result['ours'] = shares(prof)
        result['again'] = theirs()
        result['ours, second'] = shares(ours())
    """,
    "inside, CPU only": """
        with epprof_nb.profile() as prof:
            steps(4)
            theirs(2, (ProfilerActivity.CPU,))
            steps(4)
        result['ours'] = shares(prof)
        result['theirs'] = theirs()
    """,
    "inside, twice": """
        with epprof_nb.profile() as prof:
            steps(4)
            result['theirs'] = theirs()
            steps(3)
            result['again'] = theirs()
            steps(3)
        result['ours'] = shares(prof)
    """,
    BUSY: """
        theirs()
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
        result["ours"] = shares(prof)
    """,
}
BESIDE = [name for name in SCENARIOS if "alone" not in name and name != BUSY]


@pytest.mark.parametrize("teardown", ["0", "1"], ids=["default", "TEARDOWN_CUPTI=1"])
@pytest.mark.parametrize("name", BESIDE)
def test_profiles_are_those_of_a_process_without_torch_profiler(result_of, name, teardown):
    result = result_of(name, teardown)
    fresh, expected = result_of("alone")["ours"], result_of("theirs alone")
    for key, found in result.items():
        if key.startswith("ours"):
            assert_same(found, fresh, key)
        else:
            assert found == expected[key], (key, result)
    interrupted = any("torch.profiler recorded for" in n for n in result["ours"]["notes"])
    assert interrupted == name.startswith("inside")


def test_after_teardown_the_first_profile_has_the_callbacks_back(result_of):
    notes = result_of("before", "1")["ours"]["notes"]
    assert not any("callbacks are held" in note for note in notes)
    notes = result_of("before", "0")["ours"]["notes"]
    assert any("callbacks are held" in note for note in notes)


def test_a_thread_beside_a_busy_cell_stays_nobodys_after_torch_profiler(result_of):
    found = result_of(BUSY)["ours"]
    assert sum(found["shares"].values()) > 0
    assert all(key.endswith("nobody/none") for key in found["shares"])
