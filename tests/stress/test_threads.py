"""Threads that run sessions, launch work and open ops at the same time."""

import random
import threading

import epprof_nb
from epprof_nb import _native, host
from epprof_nb.recording.session.service import service
from tests.helpers.threads import run_all
from tests.stress import FACTOR

THREADS, ROUNDS = 8, 10


def test_every_thread_finds_its_own_work_in_its_sessions():
    failures = []

    def use(number: int) -> None:
        rng = random.Random(number)
        array, stream = host.empty((4,)), host.Stream()
        try:
            for turn in range(ROUNDS * FACTOR):
                name = f"{number}.{turn}"
                detail = rng.choice(["default", "all"])
                with epprof_nb.profile(detail=detail) as prof, epprof_nb.op(name, turn=turn):
                    host.launch(lambda a: a.fill(1), array, name=name, stream=stream)
                ops, work = prof.ops, prof.activities
                mine = ops[ops["name"] == name]
                assert len(mine) == 1, name
                launched = work[(work["kind"] == "kernel") & (work["name"] == name)]
                assert launched["op_id"].tolist() == mine.index.tolist(), name
        except BaseException as error:
            failures.append(error)
        finally:
            stream.close()

    run_all(threading.Thread(target=use, args=(number,)) for number in range(THREADS))
    assert not failures
    assert service.open_subscriptions == 0
    assert not _native.push(_native.intern("probe"), 1)


def test_threads_launch_beside_cells_whose_threads_end():
    ended, found = threading.Event(), []

    def launch() -> None:
        array, stream = host.empty((4,)), host.Stream()
        while not ended.is_set():
            host.launch(lambda a: a.fill(1), array, name="beside", stream=stream)
            stream.synchronize()
        stream.close()

    def cell() -> None:
        with epprof_nb.profile() as prof, epprof_nb.op("cell"):
            host.launch(lambda a: a.fill(1), host.empty((4,)), name="own")
        work = prof.activities
        own = prof.ops.index[prof.ops["name"] == "cell"]
        found.append(work.loc[work["name"] == "own", "op_id"].tolist() == own.tolist())

    beside = [threading.Thread(target=launch) for _ in range(3)]
    for thread in beside:
        thread.start()
    try:
        for _ in range(15 * FACTOR):
            thread = threading.Thread(target=cell)
            thread.start()
            thread.join()
    finally:
        ended.set()
        for thread in beside:
            thread.join()
    assert found == [True] * 15 * FACTOR


def test_sessions_that_are_dropped_on_any_thread_end():
    from epprof_nb.recording.session import session

    def drop() -> None:
        rng = random.Random(threading.get_ident())
        for _ in range(40 * FACTOR):
            held = [session.start() for _ in range(rng.randrange(1, 4))]
            if rng.random() < 0.5:
                held.pop().stop()
            held.clear()

    run_all(threading.Thread(target=drop) for _ in range(4))
    assert service.open_subscriptions == 0
    assert not service._recording
