"""The choice of the runs that are recorded node by node."""

from __future__ import annotations

import heapq
import threading
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from epprof_nb.recording.onnxruntime import run_log
from epprof_nb.recording.onnxruntime.choice_of_runs import (
    MAX_FIRST_RUNS,
    MAX_INPUTS,
    MAX_SIZES,
    SAMPLED_SHARE,
    RunHistory,
    SessionRuns,
)
from epprof_nb.recording.onnxruntime.run_log import LoggedRun
from tests.helpers.threads import run_all


def ran(history, *, launches=0, launch_hash=0, functions=0, recorded_ns=0, plain_ns=0, first=False):
    """Whether the next run is recorded, as the history then knows."""
    mismatched = history.comparison.mismatched
    recorded = history.must_record(first=first)
    history.add(
        recorded=recorded,
        first=first,
        launches=launches,
        launch_hash=launch_hash,
        function_hash=functions,
        duration_ns=recorded_ns if recorded else plain_ns,
        mismatched=mismatched,
    )
    return recorded


def test_two_runs_are_recorded_and_the_launches_of_the_others_compared():
    history = RunHistory()
    assert [ran(history, launches=9, launch_hash=5) for _ in range(50)] == [True] * 2 + [False] * 48


def test_the_first_run_of_each_thread_is_recorded_up_to_a_limit():
    history = RunHistory()
    for _ in range(5):
        ran(history, launches=9, launch_hash=5)
    for _ in range(MAX_FIRST_RUNS):
        assert ran(history, launches=9, launch_hash=6, first=True)
        assert not ran(history, launches=9, launch_hash=5)
    assert not ran(history, launches=9, launch_hash=6, first=True)


def test_all_runs_of_threads_that_begin_at_once_are_recorded_or_launch_what_such_runs_did():
    """A thread launches more in its first run. Other threads keep the cores busy meanwhile."""
    runs = SessionRuns(1, must_record_all=False)
    threads, each = 4, 25
    for _ in range(5):  # an earlier profile on another thread
        ran(runs.history("key"), launches=9, launch_hash=5, first=runs.is_first_of_thread())
    barrier, is_over = threading.Barrier(threads), threading.Event()
    made = []

    def work(number):
        barrier.wait(60)
        for _ in range(each):
            is_first = runs.is_first_of_thread()
            launched = 100 + number if is_first else 5
            history = runs.history("key")
            made.append((launched, ran(history, launches=9, launch_hash=launched, first=is_first)))

    def load():
        while not is_over.is_set():
            sum(range(1000))

    loads = [threading.Thread(target=load) for _ in range(4)]
    for thread in loads:
        thread.start()
    try:
        run_all(threading.Thread(target=work, args=(n,)) for n in range(threads))
    finally:
        is_over.set()
        for thread in loads:
            thread.join()
    known = {5} | {launched for launched, is_recorded in made if is_recorded}
    assert len(made) == threads * each
    assert sum(launched in known for launched, _ in made) == threads * each
    assert sum(is_recorded for _, is_recorded in made) <= 3 * threads


class Threads:
    """Threads that run a session at once, each run as long as `length_of` says."""

    def __init__(self, monkeypatch):
        self.runs = SessionRuns(1, must_record_all=False)
        self.ended = ()
        self.is_first = False
        native = SimpleNamespace(ort_observe_run=lambda _: None, ort_take_run=lambda: self.ended)
        monkeypatch.setattr(run_log, "_native", native)
        monkeypatch.setattr(SessionRuns, "is_first_of_thread", lambda _: self.is_first)

    def launched(self, each, length_of, hash_of):
        """Run `each` runs on 4 threads; return what each launched, and whether it was recorded."""
        made, waiting, left = [], [], [each] * 4

        def begin(time, number):
            if left[number]:
                self.is_first = left[number] == each
                run = run_log.RunInProgress(self.runs, "key")
                launches = 100 + number if self.is_first else hash_of(number, each - left[number])
                left[number] -= 1
                end = time + length_of(run.records_nodes)
                heapq.heappush(waiting, (end, number, launches, run))

        for number in range(4):
            begin(0, number)
        while waiting:
            time, number, launches, run = heapq.heappop(waiting)
            self.ended = 1, 9, launches, launches, run.records_nodes, False
            run.end(1000, failed=False)
            made.append((launches, run.records_nodes))
            begin(time, number)
        return made


@pytest.mark.parametrize("seed", range(20))
def test_threads_that_begin_at_once_do_not_all_record_the_same(monkeypatch, seed):
    random = Random(seed)
    threads = Threads(monkeypatch)
    made = threads.launched(
        25, lambda recorded: random.uniform(1, 3) * (2 if recorded else 1), lambda *_: 5
    )
    known = {launches for launches, recorded in made if recorded}
    assert known == {5, 100, 101, 102, 103}
    assert sum(recorded for _, recorded in made) <= 8


def test_runs_that_overlap_and_launch_the_same_are_one_mismatch(monkeypatch):
    threads = Threads(monkeypatch)
    made = threads.launched(40, lambda _: 1, lambda _, number: 5 if number < 20 else 6)
    changed = [recorded for launches, recorded in made if launches == 6]
    assert 1 <= changed.count(True) <= 2


def test_overlapping_runs_whose_launches_always_differ_are_recorded(monkeypatch):
    threads = Threads(monkeypatch)
    made = threads.launched(40, lambda _: 1, lambda thread, number: 1000 * thread + number)
    assert sum(recorded for _, recorded in made) >= 0.8 * len(made)


def test_a_recording_that_ended_does_not_keep_runs_open(monkeypatch):
    threads = Threads(monkeypatch)
    threads.launched(1, lambda _: 1, lambda *_: 5)
    threads.is_first = False
    run = run_log.RunInProgress(threads.runs, "key")
    assert run.records_nodes
    assert not run_log.RunInProgress(threads.runs, "key").records_nodes
    run_log.end_recording()
    assert run_log.RunInProgress(threads.runs, "key").records_nodes


def test_after_other_launches_the_next_run_is_recorded():
    history = RunHistory()
    for _ in range(5):
        ran(history, launches=9, launch_hash=5)
    assert not ran(history, launches=8, launch_hash=6)
    assert ran(history, launches=8, launch_hash=6)
    assert not ran(history, launches=8, launch_hash=6)
    assert not ran(history, launches=9, launch_hash=5)


def test_a_session_whose_launches_always_differ_is_soon_recorded_run_by_run():
    history = RunHistory()
    recorded = [ran(history, launches=9, launch_hash=i) for i in range(300)]
    assert recorded.count(False) <= 10
    again = [ran(history, launches=9, launch_hash=1) for _ in range(200)]
    assert not any(again[-50:])


def test_a_model_with_subgraphs_is_recorded_run_by_run():
    history = RunHistory()
    history.may_learn = False
    assert all(ran(history, launches=9, launch_hash=5) for _ in range(20))


def test_without_device_work_a_share_of_the_time_goes_into_recording():
    history = RunHistory()
    recorded = [ran(history, recorded_ns=1_500_000, plain_ns=1_000_000) for _ in range(2000)]
    extra = recorded[2:].count(True) * 500_000
    total = recorded[2:].count(False) * 1_000_000 + recorded[2:].count(True) * 1_500_000
    assert 0.8 * SAMPLED_SHARE < extra / total <= SAMPLED_SHARE
    # Throughout the recording, not only at its start.
    assert any(recorded[-100:])


def test_recording_that_costs_nothing_is_always_on():
    history = RunHistory()
    recorded = [ran(history, recorded_ns=1_000_000, plain_ns=1_000_000) for _ in range(50)]
    assert recorded.count(False) == 3  # to know the duration of such a run


def test_an_interrupted_run_does_not_make_recording_look_free():
    history = RunHistory()
    plain_ns = iter([30_000_000] + [1_000_000] * 2000)
    recorded = []
    for _ in range(2000):
        recorded.append(history.must_record(first=False))
        history.add(
            recorded=recorded[-1],
            first=False,
            launches=0,
            launch_hash=0,
            function_hash=0,
            duration_ns=1_500_000 if recorded[-1] else next(plain_ns),
            mismatched=0,
        )
    assert recorded[2:].count(True) < 0.15 * len(recorded)


def test_forgotten_histories_are_recorded_again():
    history = RunHistory()
    for _ in range(5):
        ran(history, launches=9, launch_hash=5)
    history.forget()
    assert history.must_record(first=False)


def test_threads_share_a_history():
    runs = SessionRuns(1, must_record_all=False)
    found = []

    def work(number):
        for i in range(2000):
            history = runs.history(i % 3)
            ran(history, launches=9, launch_hash=i % 3 if i % 7 else number * 10_000 + i)
            found.append(history)

    run_all(threading.Thread(target=work, args=(n,)) for n in range(4))
    assert len(found) == 8000
    # Each history gives way to one of any size if the launches of a thread are always new.
    assert 3 <= len(set(map(id, found))) <= 6


def test_histories_are_bounded_and_the_oldest_goes_first():
    runs = SessionRuns(1, must_record_all=False)
    first = runs.history(0)
    for key in range(1, MAX_INPUTS):
        runs.history(key)
    assert runs.history(0) is first
    runs.history("one more")
    assert runs.history(0) is first
    assert len(runs.histories()) == MAX_INPUTS
    assert 1 not in runs._by_key


def test_launches_that_were_recorded_in_vain_are_recorded_again_and_then_always():
    history = RunHistory()
    for _ in range(3):
        recorded = [ran(history, launches=9, launch_hash=5) for _ in range(6)]
        assert recorded.count(False) >= 3
        history.add_mismatched([LoggedRun(1, history, False, False, 5)])
    # The observed and the recorded data of a launch never agree.
    assert all(ran(history, launches=9, launch_hash=5) for _ in range(20))


def test_runs_with_new_launches_do_not_lead_to_recording_every_run():
    history = RunHistory()
    for number in range(10):
        for _ in range(30):
            ran(history, launches=9, launch_hash=5)
        ran(history, launches=9, launch_hash=100 + number)
        history.add_mismatched([LoggedRun(1, history, False, False, 100 + number)])
    assert not all(ran(history, launches=9, launch_hash=5) for _ in range(20))


F32 = np.dtype(np.float32)


def test_inputs_of_many_sizes_share_a_history():
    runs = SessionRuns(1, must_record_all=False)
    feeds = [(((1, length), F32),) for length in range(10)]
    found = [runs.history(key) for key in feeds]
    assert len(set(map(id, found))) == MAX_SIZES + 1
    assert [each.any_size for each in found] == [False] * MAX_SIZES + [True] * 6
    assert [runs.history(key) for key in feeds] == found
    # Another type or number of dimensions is another kind of input.
    other = runs.history((((1, 7), np.dtype(np.int64)),)), runs.history((((1, 7, 1), F32),))
    assert not any(each.any_size for each in other)
    assert runs.history((("tensor(float)", 1, 7),)) is not runs.history((("tensor(float)", 7),))


def grown(history, launches):
    """Whether the runs were recorded; `launches` are pairs of function hash and size."""
    return [ran(history, launches=9, launch_hash=hash(pair), functions=pair[0])
            for pair in launches]  # fmt: skip


def test_runs_of_any_size_are_known_by_their_functions_once_two_sizes_are():
    recorded = grown(RunHistory(any_size=True), [(1, size) for size in range(128)])
    assert recorded[:2] == [True, True]
    assert recorded.count(True) <= 7  # some later ones check it
    assert recorded[64:].count(True) >= 1


def test_the_same_size_again_is_known_by_its_size_only():
    history = RunHistory(any_size=True)
    assert grown(history, [(1, 5)] * 18) == [True] * 2 + [False] * 16
    assert grown(history, [(1, 6)] * 3) == [True, False, False]  # recorded to check the others
    assert grown(history, [(1, 7)] * 9) == [False] * 9


def test_other_functions_are_recorded_at_two_sizes():
    history = RunHistory(any_size=True)
    grown(history, [(1, size) for size in range(10)])
    assert grown(history, [(2, size) for size in range(6)]) == [False, True, True, *[False] * 3]


def test_functions_that_change_with_the_size_cost_few_recorded_runs():
    """A library chooses kernels by the alignment and the length of a row."""
    launches = [(size // 32 * 10 + (size % 8 == 0) + (size % 4 == 0), size) for size in range(256)]
    assert grown(RunHistory(any_size=True), launches).count(True) <= 0.6 * 256


def test_functions_that_are_always_new_are_soon_recorded_run_by_run():
    recorded = grown(RunHistory(any_size=True), [(size, size) for size in range(100)])
    assert recorded.count(False) <= 8


def test_launches_whose_sizes_keep_changing_are_compared_without_sizes():
    """As with bound inputs, whose shapes are unknown, or nodes whose work depends on values."""
    runs = SessionRuns(1, must_record_all=False)
    recorded = [
        ran(runs.history("run_with_iobinding"), launches=9, launch_hash=100 + i, functions=1)
        for i in range(100)
    ]
    assert recorded.count(True) <= 15
    assert runs.history("run_with_iobinding").any_size


def test_a_decoder_with_bound_inputs_has_few_recorded_steps():
    """The sizes of its inputs are unknown, and libraries choose other kernels at some sizes."""
    launches = [0, 1, 2, 2, *[3] * 4, *[4] * 8, *[5] * 16]
    launches += [number for number in range(6, 12) for _ in range(16)]
    functions = [min(number, 6 + (number >= 8)) for number in launches]
    runs = SessionRuns(1, must_record_all=False)

    def recorded():
        return [
            ran(runs.history("bound"), launches=85, launch_hash=number, functions=100 + function)
            for number, function in zip(launches, functions, strict=True)
        ].count(True)

    assert len(launches) == 128
    assert [recorded(), recorded(), recorded()] == [18, 6, 2]


@pytest.mark.parametrize("first_ns", [200, 10**9])
def test_the_time_of_the_first_run_allows_no_more_recording(first_ns):
    """It sets up the session, and may take a thousand times as long as others."""
    history = RunHistory()
    ran(history, recorded_ns=first_ns)
    recorded = [ran(history, recorded_ns=200, plain_ns=100) for _ in range(1_000)]
    spent = sum(recorded[1:]) * (200 - 100)
    assert 0 < spent <= SAMPLED_SHARE * (sum(recorded) * 200 + recorded.count(False) * 100)
