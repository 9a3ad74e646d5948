"""Lines that findings on idle time name, from the stacks of the calls around each gap."""

import pytest

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


def rounds(frames, *, sources, ops=(), samples=()):
    """Each of 12 rounds loads for 20 ms, then makes a call in each of these stacks in 1 ms."""
    rows, ids = stack_rows(*frames, "In[1]:load:2")
    work, calls, length = [], [], MS // len(frames)
    for i in range(ROUNDS):
        for number, stack in enumerate(ids[:-1]):
            t = i * 21 * MS + 20 * MS + number * length
            calls.append(call(t, t + 1000, correlation_id=len(calls), stack_id=stack))
            work.append(kernel(t + 1000, t + length, correlation_id=len(work), thread_id=1))
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


@pytest.mark.parametrize("between", ["", "lib/module.py:call:9 "])
def test_without_statements_the_line_is_in_the_caller(between):
    frames = [f"run.py:20 run.py:main:11 {between}run.py:encode:{number}" for number in (5, 6, 7)]
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
