"""Findings on cells as users write them: threads that wait, recursion, generators, coroutines."""

import pytest

FETCH = """
from concurrent.futures import ThreadPoolExecutor
import time
def fetch(number):
    time.sleep(0.05)
    return number
pool = ThreadPoolExecutor(2)
futures = [pool.submit(fetch, number) for number in range(6)]
found = []
for future in futures:
    found.append(future.result())
pool.shutdown()
"""
QUEUE = """
import queue, threading, time
waiting = queue.Queue()
def produce():
    for number in range(5):
        time.sleep(0.05)
        waiting.put(number)
    waiting.put(None)
threading.Thread(target=produce).start()
total = 0
while (number := waiting.get()) is not None:
    total += number
"""
LOCK = """
import threading, time
lock, taken = threading.Lock(), threading.Event()
def hold():
    with lock:
        taken.set()
        time.sleep(0.3)
holder = threading.Thread(target=hold)
holder.start()
taken.wait()
lock.acquire()
lock.release()
holder.join()
"""
LIBRARY = """
import json, threading
numbers = [[i] * 9 for i in range(50_000)]
encode = threading.Thread(target=json.dumps, args=(numbers,), kwargs={"indent": 1})
encode.start()
encode.join()
done = True
"""


@pytest.fixture
def insights(run, shell):
    """Return the findings on a cell, as `prof.insights()` has them."""

    def found(cell):
        result = run(f"%%gpuprofile prof\n{cell}")
        result.raise_error()
        return shell.user_ns["prof"].insights()

    return found


@pytest.mark.parametrize(("cell", "line"), [(FETCH, 6), (QUEUE, 7), (LOCK, 8)])
def test_a_wait_for_a_thread_that_sleeps_is_the_sleep(insights, cell, line):
    (found,) = insights(cell).query("kind == 'hot line'").itertuples()
    assert found.line == line
    assert "most of it in `time.sleep`" in found.text
    assert found.remedy.startswith("This code sleeps")


def test_a_wait_for_a_function_of_a_library_is_no_work(insights):
    (found,) = insights(LIBRARY).query("kind == 'hot line'").itertuples()
    assert found.text.startswith("Line 7 (`encode.join()`)")
    assert "most of it to wait for " in found.text
    assert found.remedy.startswith("This code waits for a thread")
