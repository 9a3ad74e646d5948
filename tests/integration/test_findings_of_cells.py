"""Findings on cells as users write them: threads that wait, recursion, generators, coroutines."""

import numpy as np
import pytest

from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.steps.iterations import MIN_ITERATIONS, iterations

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
encode = threading.Thread(None, json.dumps, "encode", (numbers,), {"indent": 1})
encode.start()
encode.join()
done = True
"""

RECURSION = """
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)
fib(13)
"""
MUTUAL_RECURSION = """
def even(n):
    if n == 0:
        return True
    before = odd(n - 1)
    return before
def odd(n):
    if n == 0:
        return False
    return even(n - 1)
even(200)
"""
PERMUTATIONS = """
def permute(items, k=0):
    if k == len(items):
        return 1
    count = 0
    for i in range(k, len(items)):
        items[k], items[i] = items[i], items[k]
        count += permute(items, k + 1)
        items[k], items[i] = items[i], items[k]
    return count
permute([1, 2, 3, 4, 5])
"""
RECURSIVE_GENERATOR = """
def walk(low, high):
    if low >= high:
        return
    middle = (low + high) // 2
    yield from walk(low, middle)
    yield middle
    yield from walk(middle + 1, high)
total = sum(walk(0, 100))
"""
COROUTINES = """
import asyncio
async def fetch(number):
    await asyncio.sleep(0)
    page = str(number)
    return len(page)
sizes = await asyncio.gather(*[fetch(number) for number in range(40)])
"""
WORKERS = """
import asyncio
async def work(queue):
    while True:
        number = await queue.get()
        await asyncio.sleep(0.02)
        queue.task_done()
async def run():
    queue = asyncio.Queue()
    for number in range(8):
        queue.put_nowait(number)
    tasks = [asyncio.create_task(work(queue)) for _ in range(2)]
    await queue.join()
    for task in tasks:
        task.cancel()
await run()
done = True
"""
FIRST_WAIT = """
import threading, time
from concurrent.futures import ThreadPoolExecutor, as_completed
def work(number):
    time.sleep(0.3 if number == 0 else 0)
    return number
total = 0
with ThreadPoolExecutor(1) as pool:
    futures = [pool.submit(work, number) for number in range(15)]
    for future in as_completed(futures):
        total += future.result()
"""
PAIRS = """
import math
points = [(i * 37 % 101, i * 53 % 97) for i in range(60)]
best = 1e9
for i in range(len(points)):
    for j in range(i + 1, len(points)):
        between = math.dist(points[i], points[j])
        best = min(best, between)
"""
FOR = """
total = 0
for number in range(20):
    total += number
"""
WHILE = """
left = 20
while left:
    left -= 1
"""
CALLED = """
def step(number):
    twice = 2 * number
    return twice
for number in range(20):
    step(number)
"""
COMPREHENSION = """
def step(number):
    twice = 2 * number
    return twice
found = [step(number) for number in range(20)]
"""
LIBRARY_LOOP = """
from functools import reduce
def add(total, number):
    total += number
    return total
found = reduce(add, range(21))
"""
GENERATOR = """
def numbers(count):
    first = 1
    for number in range(count):
        yield first + number
total = 0
for number in numbers(20):
    total += number
"""
AWAITED = """
import asyncio
async def fetch(number):
    await asyncio.sleep(0)
    return number
async def main():
    found = []
    for number in range(20):
        found.append(await fetch(number))
    return found
await main()
"""


@pytest.fixture
def profile(run, shell):
    """Return the profile of a cell."""

    def profiled(cell):
        run(f"%%gpuprofile prof\n{cell}").raise_error()
        return shell.user_ns["prof"]

    return profiled


@pytest.fixture
def insights(profile):
    """Return the findings on a cell, as `prof.insights()` has them."""
    return lambda cell: profile(cell).insights()


@pytest.mark.parametrize(("cell", "line"), [(FETCH, 6), (QUEUE, 7), (LOCK, 8)])
def test_a_wait_for_a_thread_that_sleeps_is_the_sleep(insights, cell, line):
    (found,) = insights(cell).query("kind == 'hot line'").itertuples()
    assert found.line == line
    assert "mostly in `time.sleep`" in found.text
    assert found.remedy.startswith("This code sleeps")


def test_a_wait_for_a_function_of_a_library_is_no_work(insights):
    (found,) = insights(LIBRARY).query("kind == 'hot line'").itertuples()
    assert found.text.startswith("Line 7 (`encode.join()`)")
    assert ", mostly to wait for `encode`" in found.text
    assert found.remedy.startswith("This code waits for a thread")


@pytest.mark.parametrize(
    "cell", [RECURSION, MUTUAL_RECURSION, PERMUTATIONS, RECURSIVE_GENERATOR, COROUTINES]
)
def test_calls_and_resumptions_are_no_iterations(profile, cell):
    prof = profile(cell)
    assert len(iterations(index_of(prof)).start) == 0
    assert len(prof.ops) > MIN_ITERATIONS
    assert not prof.insights()["kind"].isin(["warm-up", "outliers", "drift"]).any()


def test_a_line_that_awaits_waits_in_the_event_loop(insights):
    (found,) = insights(WORKERS).query("kind == 'hot line'").itertuples()
    assert found.text.startswith("Line 17 (`await run()`)")
    assert found.text.endswith(", mostly to wait in the event loop.")
    assert found.remedy.startswith("This code waits")


def test_turns_of_coroutines_that_run_at_once_are_no_iterations(profile):
    prof = profile(WORKERS.replace("range(8)", "range(40)").replace("0.02", "0"))
    lines = np.append(prof.tables["ops"]["line"], -1)
    assert lines[iterations(index_of(prof)).loop] != 5  # that of `while True:`
    assert (lines == 5).sum() == 2


def test_a_wait_for_a_thread_is_no_warm_up(insights):
    assert not insights(FIRST_WAIT)["kind"].isin(["warm-up", "outliers"]).any()
    alone = FIRST_WAIT.replace("pool.submit(work, number)", "number")
    alone = alone.replace("as_completed(futures)", "futures")
    alone = alone.replace("future.result()", "work(future)")
    assert insights(alone)["kind"].eq("warm-up").any()


@pytest.mark.parametrize("loop", ["range(len(points))", "reversed(range(len(points)))"])
def test_iterations_with_other_numbers_of_statements_are_not_compared(profile, loop):
    prof = profile(PAIRS.replace("range(len(points))", loop))
    assert len(iterations(index_of(prof)).start) == 60
    assert not prof.insights()["kind"].eq("warm-up").any()
    for text in prof.insights().query("kind == 'drift'")["text"]:
        assert "; it ran 119 statements, the first one 1." in text


def test_a_recursive_line_is_no_loop_over_values(insights):
    (found,) = insights(RECURSION.replace("13", "20")).query("kind == 'hot line'").itertuples()
    assert " rounds" not in found.text
    assert "whole arrays" not in found.remedy


def test_executions_that_were_left_out_are_no_count_of_a_line(profile):
    prof = profile(RECURSION.replace("13", "20"))
    lost = prof.info["recorded"]["statements_lost"]
    assert lost > 0
    assert f"{lost:,} executions of statements in recursive calls not recorded" in repr(prof)
    (found,) = prof.insights().query("kind == 'hot line'").itertuples()
    assert "s in at least " in found.text


@pytest.mark.parametrize(
    ("cell", "line"),
    [(FOR, 3), (WHILE, 3), (CALLED, 5), (COMPREHENSION, 5), (LIBRARY_LOOP, 6), (GENERATOR, 7),
     (AWAITED, 8)],
)  # fmt: skip
def test_passes_of_a_loop_are_iterations(profile, cell, line):
    prof = profile(cell)
    found = iterations(index_of(prof))
    assert len(found.start) == 20
    assert prof.tables["ops"]["line"][found.loop] == line + 1  # below the magic and an empty line
