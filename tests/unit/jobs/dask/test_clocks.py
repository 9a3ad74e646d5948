"""The clocks of hosts compared by an echo: time namespaces stand for other hosts."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys

import pytest

from epprof_nb import _native
from epprof_nb.jobs.dask.clock_echo import Echo, of_times, sample
from epprof_nb.jobs.process_part import own_clock
from tests.unit.jobs.time_namespaces import in_other_namespace, needs_namespaces

LATER_NS = 86_400 * 10**9


@pytest.fixture
def echo():
    echo = Echo("secret")
    yield echo
    echo.close()


def test_the_same_clock_has_an_offset_within_the_error(echo):
    time_ns, offset_ns, error_ns = sample(["127.0.0.1"], echo.port, "secret")
    assert time_ns <= _native.now_ns()
    assert abs(offset_ns) <= error_ns


@pytest.mark.parametrize("seed", range(5))
def test_the_error_bounds_any_delays(seed):
    numbers = random.Random(seed)
    for _ in range(1_000):
        offset = numbers.randrange(-(10**15), 10**15)
        out, held, back = (int(numbers.expovariate(1e-5)) for _ in range(3))
        sent = numbers.randrange(10**15)
        there = sent + out + offset
        _, found, error = of_times(sent, there, there + held, sent + out + held + back)
        assert abs(found - offset) <= error


def test_the_echo_answers_only_the_token(echo):
    assert sample(["127.0.0.1"], echo.port, "guessed", count=2) is None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.settimeout(0.2)
        for request in (b"", b"x" * 32, b"x" * 60_000):
            connection.sendto(request, ("127.0.0.1", echo.port))
            with pytest.raises(TimeoutError):
                connection.recv(100)
    assert sample(["127.0.0.1"], echo.port, "secret") is not None


def test_an_ended_echo_does_not_answer():
    echo = Echo("secret")
    echo.close()
    assert sample(["127.0.0.1", "no such host"], echo.port, "secret", count=3) is None


@needs_namespaces
def test_a_clock_in_another_namespace_is_placed_within_the_error(echo):
    code = (
        "import json, sys; from epprof_nb.jobs.dask.clock_echo import sample\n"
        "print(json.dumps(sample(['127.0.0.1'], int(sys.argv[1]), 'secret')))"
    )
    run = subprocess.run(
        in_other_namespace(sys.executable, "-c", code, str(echo.port)),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    _, offset_ns, error_ns = json.loads(run.stdout)
    assert abs(offset_ns + LATER_NS) <= error_ns


WORKER = """
import sys
from distributed import Worker
import asyncio
async def main(address):
    async with Worker(address, nthreads=1, dashboard=False) as worker:
        await worker.finished()
if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
"""


@needs_namespaces
def test_workers_in_another_namespace_are_on_the_clock_of_the_job(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    from epprof_nb.jobs.dask import recording
    from tests.paths import ROOT

    (tmp_path / "worker.py").write_text(WORKER)
    with (
        distributed.LocalCluster(
            n_workers=0, processes=True, dashboard_address=":0", host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        process = subprocess.Popen(
            in_other_namespace(sys.executable, "worker.py", cluster.scheduler_address),
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.fspath(ROOT)},
        )  # fmt: skip
        try:
            client.wait_for_workers(1, timeout=200)
            assert check_placement(client, "udp") < 10**9
            # No datagram arrives.
            monkeypatch.setattr(recording.ClusterRecording, "_own_addresses", lambda _: [])
            check_placement(client, "messages")
        finally:
            client.shutdown()
            process.terminate()
            process.wait()


def check_placement(client, by):
    """Profile a task, compare its place on the clock of the job with the true one."""
    import epprof_nb
    from tests.helpers.dask_tasks import work

    with epprof_nb.cluster(client).profile() as job:
        before_ns = _native.now_ns()
        client.submit(work, 1, pure=False).result()
        after_ns = _native.now_ns()
    of = {process.manifest.followed: process for process in job.processes}
    clock, own_begin_ns = of["dask"].manifest.clock, of["cell"].manifest.begin_ns
    assert clock["compared_by"] == by
    assert clock["time_namespace"] != own_clock()["time_namespace"]
    worker, own = (job.placements[of[how].number] for how in ("dask", "cell"))
    assert job.ranks.loc[of["dask"].number, "clock_error_ns"] == worker.error_ns
    true_ns = of["dask"].manifest.begin_ns - LATER_NS - own_begin_ns
    assert abs(worker.offset_ns - own.offset_ns - true_ns) <= worker.error_ns
    (task,) = job[of["dask"].number].ops.query("op_type == 'task'").itertuples()
    start_ns = task.start_ns + worker.offset_ns - own.offset_ns + own_begin_ns
    assert before_ns - worker.error_ns <= start_ns <= after_ns + worker.error_ns
    own_end, end = (
        job.placements[of[how].number].offset_ns + job[of[how].number].info["code_ns"]
        for how in ("cell", "dask")
    )
    assert abs(end - own_end) <= 2 * worker.error_ns  # the worker was told when the block ended
    return worker.error_ns
