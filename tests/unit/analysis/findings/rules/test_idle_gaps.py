"""Lines that findings on idle time name, from the stacks of the calls around each gap."""

import subprocess
import sys

import pytest

import epprof_nb
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import HOST_SAMPLES
from tests.helpers import tiny
from tests.helpers.planted import MS, info, of_kind
from tests.helpers.tiny import call, kernel, line, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks

MODEL = """def load():
    sleep(0.02)
    return rows
def encode(r):
    x = to_device(r)
    y = launch(matmul, x)
    return to_host(y)
"""
CELL = "for i in range(12):\n    r = load()\n    out = encode(r)\n"
SCRIPT = MODEL + "def main():\n" + "".join(f"    {text}\n" for text in CELL.splitlines())
ROUNDS = 12


def rounds(frames, *, sources, ops=(), samples=(), sampled="In[1]:load:2"):
    """Each of 12 rounds loads for 20 ms, then makes a call in each of these stacks in 1 ms."""
    rows, ids = stack_rows(*frames, sampled)
    work, calls, length = [], [], MS // len(frames)
    for i in range(ROUNDS):
        for number, stack in enumerate(ids[:-1]):
            t = i * 21 * MS + 20 * MS + number * length
            calls.append(call(t, t + 1000, correlation_id=len(calls), stack_id=stack))
            work.append(kernel(t + 1000, t + length, correlation_id=len(work), thread_id=1,
                               stack_id=stack))  # fmt: skip
    found = profile(ops, work, calls, info=info(work[-1]["end_ns"]), sources=sources)
    with_stacks(found, rows)
    found.tables["host_samples"] = tiny.table(
        HOST_SAMPLES,
        [{"start_ns": t, "stack_id": ids[-1], "interval_ns": MS, "thread_id": 1} for t in samples],
    )
    return found


def named(prof):
    """Text, file and line of the finding on most idle time."""
    found = prof.insights().query("kind == 'idle'").iloc[0]
    return found["text"], found["cell"], int(found["line"])


def statements():
    """The statements of the cell: `r = load()` runs before each call, `out = encode(r)` then."""
    ops = [line(1, 1, 0, ROUNDS * 21 * MS, cell="In[2]", end_line=3)]
    for i in range(ROUNDS):
        t = i * 21 * MS
        ops += [
            line(2 * i + 2, 2, t, t + 20 * MS - 1, 1, cell="In[2]", end_line=2),
            line(2 * i + 3, 3, t + 20 * MS - 1, t + 21 * MS, 1, cell="In[2]", end_line=3),
        ]
    return ops


CALLS = [(5, 6, 7), (6,)]  # one call is made in the same line each time


@pytest.mark.parametrize("lines", CALLS)
def test_the_statement_between_two_calls_of_a_function_is_named(lines):
    frames = [f"In[2]:3 In[1]:encode:{number}" for number in lines]
    prof = rounds(frames, sources={"In[1]": MODEL, "In[2]": CELL}, ops=statements())
    text, *place = named(prof)
    assert "while the host ran line 2 (`r = load()`)." in text
    assert place == ["In[2]", 2]


@pytest.mark.parametrize("lines", CALLS)
def test_with_samples_text_and_line_are_those_of_the_function(lines):
    frames = [f"In[2]:3 In[1]:encode:{number}" for number in lines]
    prof = rounds(
        frames, sources={"In[1]": MODEL, "In[2]": CELL}, ops=statements(),
        samples=[(21 * i + 10) * MS for i in range(ROUNDS)],
    )  # fmt: skip
    text, *place = named(prof)
    assert "while the host ran `load` (In[1]:2)." in text
    assert place == ["In[1]", 2]


POOL = "lib/concurrent/futures/_base.py"


WAITS = {
    "Future.result": [
        f"{POOL}:Executor.map.<locals>.result_iterator:619", f"{POOL}:_result_or_cancel:317",
        f"{POOL}:Future.result:451", "lib/threading.py:Condition.wait:327",
    ],
    "Thread.join": [
        "lib/threading.py:Thread.join:1119", "lib/threading.py:Thread._wait_for_tstate_lock:1139",
    ],
    "Popen.communicate": [
        "lib/subprocess.py:run:548", "lib/subprocess.py:Popen.communicate:1209",
        "lib/subprocess.py:Popen._communicate:2108",
        "lib/selectors.py:_PollLikeSelector.select:415",
    ],
}  # fmt: skip
NO_WAITS = [
    ["lib/asyncio/runners.py:run:190", "lib/selectors.py:_PollLikeSelector.select:415"],
    [f"{POOL}:Future.result:451"],  # it works there
]


@pytest.mark.parametrize(
    ("inside", "call"), [*((v, k) for k, v in WAITS.items()), *((v, None) for v in NO_WAITS)]
)
def test_a_line_that_waits_for_a_thread_or_process_says_in_which_call(inside, call):
    prof = rounds(
        ["In[2]:3 In[1]:encode:6"], sources={"In[1]": MODEL, "In[2]": CELL}, ops=statements(),
        samples=[(21 * i + 10) * MS for i in range(ROUNDS)],
        sampled=" ".join(["In[2]:2 In[1]:load:2", *inside]),
    )  # fmt: skip
    found = prof.insights().query("kind == 'idle'").iloc[0]
    assert (found["cell"], found["line"]) == ("In[1]", 2)
    if call is None:
        assert "while the host ran `load` (In[1]:2)." in found["text"]
        assert "waits for a thread" not in found["remedy"]
    else:
        assert f"while `load` (In[1]:2) waited in `{call}`." in found["text"]
        assert "waits for a thread or another process" in found["remedy"]


@pytest.mark.parametrize("lines", CALLS)
@pytest.mark.parametrize("between", ["", "lib/module.py:call:9 "])
def test_without_statements_the_line_is_in_the_caller(between, lines):
    frames = [f"run.py:20 run.py:main:11 {between}run.py:encode:{number}" for number in lines]
    text, *place = named(rounds(frames, sources={"run.py": SCRIPT}))
    assert "while the host ran line 10 of `main` (run.py: `r = load()`)." in text
    assert place == ["run.py", 10]


@pytest.mark.parametrize(
    ("body", "lines", "expected"),
    [
        (["for x in xs:", "    a(x)", "    b(x)", "    c(x)"], (2, 4), 2),
        (["with held():", "    a()", "    b()"], (1, 3), 1),
        (["y = [", "    a(x)", "    for x in xs if b(x)", "]"], (2, 3), 1),
    ],
)
def test_code_that_leads_back_without_return_stays_in_its_function(body, lines, expected):
    source = [
        "for x in xs:",
        "    load()",
        "    f()",
        "def f():",
        *(f"    {text}" for text in body),
    ]
    frames = [f"run.py:3 run.py:f:{4 + number}" for number in lines]
    prof = rounds(frames, sources={"run.py": "\n".join(source)})
    assert named(prof)[2] == 4 + expected


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for b in read(9):", "line 2 of `f` (run.py: `for b in read(9):`)"),
        ("for b in list(read(9)):", "line 2 of `f` (run.py: `for b in list(read(9)):`)"),
        ("for i in range(9):", "line 3 of `f` (run.py: `model(b)`)"),
    ],
)  # fmt: skip
def test_a_loop_without_other_work_makes_its_values(loop, expected):
    source = f"def f():\n    {loop}\n        model(b)\nf()\n"
    text, *_ = named(rounds(["run.py:4 run.py:f:3"], sources={"run.py": source}))
    assert f"while the host ran {expected}." in text


@pytest.mark.parametrize(
    ("line", "names", "expected"),
    [
        ("model(to_device(b))", ("copy", "launch"), 3),  # the copy comes first in each turn
        ("y = model(b) + 1", ("launch",), 4),  # either may come first
    ],
)
def test_the_first_kind_of_call_of_a_line_begins_a_turn(line, names, expected):
    source = f"def f():\n    for i in range(9):\n        sort(b)\n        {line}\nf()\n"
    prof = rounds(["run.py:5 run.py:f:4"] * len(names), sources={"run.py": source})
    calls = prof.tables["api_calls"]
    calls = calls.replace(name=CategoryColumn.of([*names] * ROUNDS))
    prof.tables["api_calls"] = calls
    assert named(prof)[2] == expected


@pytest.mark.parametrize("samples", [0, 9])
def test_work_that_waits_for_the_gil_has_the_line_of_the_host(samples):
    """Each launch starts 10 ms late, while the host sorts; the last one while it waits."""
    source = "def f():\n    for b in batches:\n        launch(b)\n        sort(b)\nf()\n"
    rows, (launch, sort) = stack_rows("run.py:5 run.py:f:3", "run.py:5 run.py:f:4")
    work, calls = [], []
    for i in range(ROUNDS):
        t = 12 * i * MS
        calls.append(call(t, t + 1000, correlation_id=i, stack_id=launch))
        work.append(kernel(t + 10 * MS, t + 11 * MS, correlation_id=i, thread_id=1,
                           stack_id=launch))  # fmt: skip
    on_host = {"devices": [{"device_id": 0, "kind": "host", "name": "host"}]}
    prof = profile((), work, calls, info=info(12 * ROUNDS * MS) | on_host,
                   sources={"run.py": source})  # fmt: skip
    with_stacks(prof, rows)
    prof.tables["host_samples"] = tiny.table(
        HOST_SAMPLES,
        [{"start_ns": (12 * i + 5) * MS, "stack_id": sort, "interval_ns": MS, "thread_id": 1}
         for i in range(samples)],
    )  # fmt: skip
    text, *place = named(prof)
    name = "`f` (run.py:4)" if samples else "line 4 of `f` (run.py: `sort(b)`)"
    assert text.endswith(f"while the host ran {name}.")
    assert place == ["run.py", 4]
    assert not of_kind(prof, "held work")
    found = of_kind(prof, "idle")[0]
    assert "the GIL" in found.remedy
    assert found.gain_ns > 99 * MS


def test_a_comprehension_calls_a_function_again():
    source = "load()\nmore()\ny = [f(z) for z in x]\ndef f(z):\n    a(z)\n    b(z)\n"
    frames = ["run.py:3 run.py:f:5", "run.py:3 run.py:f:6"]
    assert named(rounds(frames, sources={"run.py": source}))[2] == 3


def test_evidence_has_a_row_for_each_gap():
    frames = [f"run.py:20 run.py:main:11 run.py:encode:{number}" for number in (5, 6, 7)]
    whole = [line(1, 20, 0, ROUNDS * 21 * MS, cell="run.py")]
    prof = rounds(frames, sources={"run.py": SCRIPT}, ops=whole)
    (found,) = of_kind(prof, "idle")
    assert found.table == "activities"
    # The work that ends each gap.
    starts = [i * 21 * MS + 20 * MS + 1000 for i in range(ROUNDS)]
    assert prof.evidence(1)["start_ns"].tolist() == starts


SERVER = """import asyncio
async def serve(n):
    for i in range(n):
        request = await fetch(i)
        x = to_device(request)
        launch(infer, x)
async def fetch(i):
    return parse(await receive(i))
asyncio.run(serve(12))
"""


@pytest.mark.parametrize(
    ("sampled", "place"),
    [
        ("run.py:9 lib/events.py:run:5", ("waited in line 4 of `serve` (run.py:", 4)),
        (
            "run.py:9 lib/events.py:run:5 run.py:serve:4 run.py:fetch:8",
            ("ran `fetch` (run.py:8)", 8),
        ),
    ],
)
def test_a_coroutine_that_waits_is_not_in_the_stack_of_the_event_loop(sampled, place):
    frames = [f"run.py:9 lib/events.py:run:5 run.py:serve:{number}" for number in (5, 6)]
    prof = rounds(
        frames, sources={"run.py": SERVER}, sampled=sampled,
        samples=[(21 * i + 10) * MS for i in range(ROUNDS)],
    )  # fmt: skip
    text, _, number = named(prof)
    assert f"while the host {place[0]}" in text
    assert number == place[1]
    (found,) = of_kind(prof, "idle")
    # All requests together take as long as one; work of the host takes its time.
    assert ("asyncio.gather" in found.remedy) == text.count("waited in")
    if "waited in" in text:
        assert found.gain_ns == pytest.approx(11 * 20 * MS, rel=0.01)


def test_a_cell_that_awaits_has_the_line_of_its_statement():
    cell = CELL.replace("load()", "await load()")
    frames = ["run.py:7 lib/events.py:run:5 In[2]:3 In[1]:encode:5"]
    prof = rounds(
        frames, sources={"In[1]": MODEL, "In[2]": cell}, ops=statements(),
        sampled="run.py:7 lib/events.py:run:5",
        samples=[(21 * i + 10) * MS for i in range(ROUNDS)],
    )  # fmt: skip
    text, *place = named(prof)
    assert "while the host waited in line 2 (`r = await load()`)." in text
    assert place == ["In[2]", 2]


SCRIPT_WITH_SETUP = """import time
import numpy as np
import epprof_nb
from epprof_nb import host
x = host.to_device(np.ones(4))
recording = epprof_nb.profile(samples=False)
print("setup")
with {} as prof:
    end = time.perf_counter() + 0.02
    while time.perf_counter() < end: pass
    host.launch(np.negative, x, x)
    host.synchronize()
prof.save("p.epprof")
"""


@pytest.mark.parametrize(
    ("begin", "lines"),
    [("epprof_nb.profile(samples=False)", "lines 9 to 10"), ("recording", "lines 5 to 10")],
)
def test_lines_before_the_profile_began_are_not_named(tmp_path, begin, lines):
    """If the source does not show where the profile began, lines of the whole file may have run."""
    (tmp_path / "first.py").write_text(SCRIPT_WITH_SETUP.format(begin))
    subprocess.run([sys.executable, "first.py"], cwd=tmp_path, check=True)
    (found,) = of_kind(epprof_nb.load(tmp_path / "p.epprof"), "idle")
    assert f"before its first work while the host ran {lines} of first.py" in found.text
