"""The time to read a trace is linear in its size, for any contents."""

import contextlib
import gc
import json
import time

import pytest

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.files.readers.read_trace import read_trace
from tests.helpers.traces import kineto, x

NODE = '{"cat" : "Node","pid" :1,"tid" :1,"dur" :1,"ts" :1,"ph" : "X","name" :"'


def nested(category, n):
    """Slices in each other, and as many calls after them."""
    inner = [x("a", i, 4 * n - 2 * i, category) for i in range(n)]
    calls = [x("b", 4 * n + i, 1, "cuda_runtime", correlation=i + 1) for i in range(n)]
    around = [x("main", 0, 9 * n)]
    return json.dumps(kineto(*around, *inner, *calls))


def calls_at_the_end_of_nested_ops(n):
    """Calls that begin when all of the nested ops but the outermost have ended."""
    inner = [x("a", 1, 10) for _ in range(n)]
    calls = [x("b", 20, 1, "cuda_runtime", correlation=i + 1) for i in range(n)]
    return json.dumps(kineto(x("main", 0, 30), *inner, *calls))


def of_many_threads(n):
    events = [x("a", i, 1, tid=i) for i in range(n)]
    calls = [x("b", i, 1, "cuda_runtime", tid=i, correlation=i + 1) for i in range(n)]
    return json.dumps(kineto(*events, *calls))


def session(n):
    """Nested events of a session of ONNX Runtime."""
    line = (
        '{"cat" : "Session","pid" :1,"tid" :1,"dur" :%d,"ts" :%d,"ph" : "X","name" :"a",'
        '"args" : {}}'
    )
    return "[\n" + ",\n".join(line % (2 * (n - i), i) for i in range(n)) + "\n]"


TRACES = {
    "keys in text": lambda n: '{"a":"' + '\\"traceEvents\\":[' * (10 * n) + '"}',
    "keys in an object": lambda n: '{"a":{' + '"traceEvents":[],' * (5 * n) + '"b":1}',
    "keys without a list": lambda n: "{" + '"traceEvents": 1,' * (10 * n) + '"b":1}',
    "arguments in a name": lambda n: "[\n" + NODE + '","args" : {' * (20 * n) + "\n]",
    "closed arguments in a name": lambda n: "[\n" + NODE + '","args" : {}' * (20 * n) + "\n]",
    "nested sessions": session,
    "nested operators": lambda n: nested("cpu_op", n),
    "nested calls of Python": lambda n: nested("python_function", n),
    "calls after nested ops": calls_at_the_end_of_nested_ops,
    "threads": lambda n: of_many_threads(5 * n),
    "invalid events": lambda n: '{"traceEvents":[' + '{"a":},' * (5 * n) + "{}]}",
}


def seconds_to_read(path):
    gc.collect()
    start = time.process_time()
    with contextlib.suppress(ProfileFileError):
        read_trace(path)
    return time.process_time() - start


@pytest.mark.parametrize("kind", TRACES)
def test_four_times_the_events_take_less_than_ten_times_as_long(tmp_path, kind):
    paths = [tmp_path / "small.json", tmp_path / "large.json"]
    for path, n in zip(paths, (1_000, 4_000), strict=True):
        path.write_text(TRACES[kind](n))
    for _ in range(3):  # the system may suspend one of both
        small, large = map(seconds_to_read, paths)
        if large < 10 * max(small, 0.005):  # the first 5 ms do not depend on the size
            return
    raise AssertionError((small, large))
