"""Gains of findings against the time that simulated cures save, and places in functions."""

import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.ranking import findings
from tests.helpers.planted import info, of_kind, repeats
from tests.helpers.simulated.gpu import MS, US, SimulatedGpu
from tests.helpers.tiny import call, kernel, line, profile
from tests.helpers.training import framework
from tests.helpers.walked_stacks import stack_rows, with_stacks

BATCHES = "for b in batches:\n    h = parse(b)\n    z = h.cuda()\n    model(z)\nsynchronize()\n"
BODY = {
    "host work": BATCHES,
    "short host work": BATCHES,
    "reading": "for x in data:\n    y = f(x)\n    total += y.item()\n    log(total)\nsync()\n",
    "checking": "for i in range(200):\n    y = y * 1.0001\n    if y[0] > 1e9: break\nsync()\n",
    "many launches": "for i in range(400):\n    y = y * 1.0001\nsync()\n",
}


def host_work(gpu, *, cured, rounds=10, work=1500 * US, kernel=900 * US):
    begin = gpu.now
    for i in range(rounds):
        with gpu.line(3):
            if cured:  # two other threads are ahead
                gpu.now = max(gpu.now, begin + (i // 2 + 1) * work)
            else:
                gpu.host(work)
        with gpu.line(4):
            gpu.copy(20 * US, size=1 << 20)
        with gpu.line(5):
            gpu.launch(kernel, before=20 * US)
    with gpu.line(6):
        gpu.wait()


def short_host_work(gpu, *, cured):
    host_work(gpu, cured=cured, rounds=60, work=400 * US, kernel=250 * US)


def reading(gpu, *, cured):
    for _ in range(12):
        with gpu.line(3):
            gpu.launch(2 * MS, before=20 * US)
        with gpu.line(4):
            if not cured:
                gpu.copy(2 * US, "DtoH")
                gpu.wait("cuStreamSynchronize")
        with gpu.line(5):
            gpu.host(1500 * US)
    with gpu.line(6):
        gpu.wait()


def checking(gpu, *, cured):
    for _ in range(200):
        with gpu.line(3):
            gpu.launch(1 * US, before=8 * US)
        if not cured:
            with gpu.line(4):
                gpu.launch(1 * US, before=8 * US)
                gpu.copy(1 * US, "DtoH")
                gpu.wait("cuStreamSynchronize")
    with gpu.line(5):
        gpu.wait()


def many_launches(gpu, *, cured):
    with gpu.line(3):
        for i in range(400):
            gpu.launch(1 * US, before=0 if cured and i else 9 * US, api=0 if cured else 4 * US)
    with gpu.line(4):
        gpu.wait()


CASES = {
    "host work": (host_work, "idle", 3),
    "short host work": (short_host_work, "idle", 3),
    "reading": (reading, "wait", 4),
    "checking": (checking, "wait", 4),
    "many launches": (many_launches, "launch-bound", 3),
}


def source_of(name, function):
    if function is None:
        return f"%%gpuprofile\n{BODY[name]}"
    return f"def {function}():\n" + "".join(f"    {x}\n" for x in BODY[name].splitlines())


def ran(name, *, cured=False, function=None):
    gpu = SimulatedGpu(function)
    CASES[name][0](gpu, cured=cured)
    return gpu, gpu.profile(source_of(name, function))


@pytest.mark.parametrize("function", [None, "run"], ids=["cell", "function"])
@pytest.mark.parametrize("name", CASES)
def test_the_gain_is_the_time_that_the_cure_saves(name, function):
    (slow, prof), (fast, cured) = (ran(name, cured=c, function=function) for c in (False, True))
    _, kind, line = CASES[name]
    won = slow.now - fast.now
    first = findings(ProfileIndex(prof), limit=None)[:2]
    found = next(f for f in first if f.kind == kind)
    assert found.low_ns <= won <= found.high_ns <= 4 * found.low_ns
    assert abs(found.gain_ns - won) <= 0.3 * won
    rows = prof.insights()
    place = rows[rows["kind"] == kind].iloc[0]
    assert (place["cell"], place["line"]) == ("In[1]", line)
    assert f"ine {line}" in found.text
    left = [f for f in of_kind(cured, kind) if f"ine {line}" in f.text]
    left = [f for f in left if "before its first work" not in f.text]
    assert not [f for f in left if f.gain_ns > 0.05 * fast.now]


@pytest.mark.parametrize("function", [None, "run"], ids=["cell", "function"])
def test_idle_time_in_many_short_gaps_is_summed_by_line(function):
    _, prof = ran("short host work", function=function)
    found = of_kind(prof, "idle")[0]
    assert "in 59 gaps of " in found.text
    assert "(median) and before its first work while" in found.text
    assert "h = parse(b)" in found.text


@pytest.mark.parametrize("name", CASES)
def test_idle_time_counts_once(name):
    """Time before a call is of the host's work, or of the launch with the time after the call."""
    _, prof = ran(name)
    index = ProfileIndex(prof)
    busy = sum(int(end - start) for start, end in zip(*index.busy(), strict=True))
    counted = sum(
        int((f.spans()[1] - f.spans()[0]).sum())
        for f in findings(index, limit=None)
        if f.kind in ("idle", "launch-bound", "held work") and f.spans
    )
    assert counted <= prof.wall_ns - busy


def test_work_that_waits_in_a_queue_is_not_held():
    gpu = SimulatedGpu()
    with gpu.line(2):
        for _ in range(300):
            gpu.launch(8 * US, before=1 * US)
    with gpu.line(3):
        gpu.wait()
    assert not of_kind(gpu.profile("\nmodel(x)\nsynchronize()\n"), "held work")


def test_idle_devices_do_not_count_the_same_time_twice():
    """Two devices idle while the host works."""
    ops, work, calls = [line(1, 2, 0, 100 * MS)], [], []
    for i in range(10):
        for device in (0, 1):
            start = 10 * MS * i + device * 10 * US
            calls.append(call(start, start + 5 * US, op_id=1, correlation_id=2 * i + device))
            work.append(kernel(start + 6 * US, start + 2 * MS, 1, correlation_id=2 * i + device,
                               device_id=device, stream_id=7 + device, thread_id=1))  # fmt: skip
    prof = profile(ops, work, calls, info=info(100 * MS), sources={"In[1]": "\nwork()\n"})
    (found,) = of_kind(prof, "idle")
    assert found.high_ns <= 100 * MS - 10 * 2 * MS + MS
    assert f"idle {round((100 * MS - 10 * 2 * MS) / MS)}" in found.text


@pytest.mark.parametrize(
    ("work", "first", "text", "is_found"),
    [
        (1 * MS, 1 * MS, "", False),  # the first launch takes as long as CUPTI's
        (1 * MS, 5 * US, "", False),
        (4 * MS, 5 * US, "", True),
        (1 * MS, 5 * US, "begin = time.perf_counter()", True),
    ],
)
def test_the_first_calls_of_a_short_cell_are_no_finding(work, first, text, is_found):
    """The host works before the first launch, which is slow or not; the code may read a clock."""
    gpu = SimulatedGpu()
    with gpu.line(2):
        gpu.host(work)
        gpu.launch(50 * US, api=first)
        for _ in range(30):
            gpu.launch(50 * US, before=5 * US)
    with gpu.line(3):
        gpu.wait()
    prof = gpu.profile(f"{text}\nmodel(x)\nsynchronize()\n", domain="driver")
    found = [f for f in findings(ProfileIndex(prof), limit=None) if f.gain_ns]
    assert [f.kind for f in found] == ["idle"] * is_found


@pytest.mark.parametrize("alike", [False, True])
def test_the_first_turn_of_a_loop_has_first_calls_only_if_the_others_are_faster(alike):
    """The host works for 1 ms in the first turn, or in all of them, before a kernel of 0.1 ms."""
    gpu = SimulatedGpu()
    for i in range(9):
        with gpu.line(2):
            gpu.host(1 * MS if alike or not i else 20 * US)
            gpu.launch(100 * US)
    with gpu.line(3):
        gpu.wait()
    prof = gpu.profile("for b in batches:\n    model(sort(b))\nsynchronize()\n")
    found = of_kind(prof, "idle")
    assert len(found) == alike
    if alike:
        assert "in 8 gaps of 897" in found[0].text
        assert "before its first work" in found[0].text


@pytest.mark.parametrize(
    ("body", "copied"),
    [
        ("for i in range(6):\n    t = table.cuda()\n    f(t)\n", True),
        ("for table in tables:\n    t = table.cuda()\n    f(t)\n", False),
        ("for i in range(6):\n    t = table.cuda()\n    table = f(t)\n", False),
        ("for i in range(6):\n    t = table.cuda()\n    table[i] = f(t)\n", False),
        ("for i in range(6):\n    t = make(table).cuda()\n    f(t)\n", False),
    ],
)
@pytest.mark.parametrize("function", [None, "run"])
def test_a_variable_that_a_loop_copies_again_and_again_is_found(body, copied, function):
    gpu = SimulatedGpu(function)
    for _ in range(6):
        with gpu.line(3):
            gpu.copy(8 * MS, size=64 << 20)
        with gpu.line(4):
            gpu.launch(1 * MS)
    head = "%%gpuprofile\n" if function is None else "def run():\n"
    indent = "" if function is None else "    "
    prof = gpu.profile(head + "".join(f"{indent}{x}\n" for x in body.splitlines()))
    found = of_kind(prof, "repeated copies")
    assert len(found) == copied
    if copied:
        assert found[0].gain_ns == 5 * 8 * MS
        assert "`table.cuda()`" in found[0].text
        assert "Or: copy from and to pinned memory" in found[0].remedies
        assert not of_kind(prof, "pageable copies")


@pytest.mark.parametrize(
    ("source", "copied"),
    [
        ("def forward(x):\n    y = x + 1\n    t = table.cuda()\n    f(y, t)\n", True),
        ("def forward(table):\n    y = table + 1\n    t = table.cuda()\n    f(y, t)\n", False),
        ("def forward(x):\n    table = x + 1\n    t = table.cuda()\n    f(x, t)\n", False),
        ("def forward(x):\n    x[0] = 1\n    t = config.table.cuda()\n    f(t)\n", True),
        ("class A:\n  def forward(self):\n    t = self.table.cuda()\n    f(t)\n", False),
        (
            "def forward():\n  t()\n  t = table.cuda()\n  f(t)\nfor table in y:\n  forward()\n",
            False,
        ),
    ],
)
def test_a_function_that_copies_the_same_variable_in_each_call_is_found(source, copied):
    gpu = SimulatedGpu("forward")
    for _ in range(6):
        with gpu.line(3):
            gpu.copy(8 * MS, size=64 << 20)
        with gpu.line(4):
            gpu.launch(1 * MS)
    found = of_kind(gpu.profile(source), "repeated copies")
    assert [finding.gain_ns for finding in found] == [5 * 8 * MS] * copied


def test_a_loop_of_a_function_that_waits_for_data_is_named():
    rows, (before, after) = stack_rows("In[2]:1 In[1]:train:4", "In[2]:1 In[1]:train:3")
    ops, work, calls = [line(1, 1, 0, 90 * MS, cell="In[2]")], [], []
    for i in range(9):
        start = 10 * MS * i
        ops.append(framework(10 + i, "waiting for data", start, start + 8 * MS, 1, "data"))
        for number, stack in enumerate((after, before)):
            begin = start + 8 * MS + number * MS
            ids = {"correlation_id": 2 * i + number, "stack_id": stack}
            calls.append(call(begin, begin + 5 * US, op_id=1, **ids))
            work.append(kernel(begin + 6 * US, begin + MS, 1, thread_id=1, **ids))
    source = "def train(loader):\n    for b in loader:\n        z = b.cuda()\n        f(z)\n"
    prof = profile(ops, work, calls, info=info(90 * MS, cell="In[2]"),
                   sources={"In[1]": source, "In[2]": "train(loader)\n"})  # fmt: skip
    (found,) = of_kind(with_stacks(prof, rows), "data loader")
    assert "while line 2 of `train` (In[1]: `for b in loader:`) waited for 9 batches" in found.text
    row = prof.insights().set_index("kind").loc["data loader"]
    assert (row["cell"], row["line"]) == ("In[1]", 2)


@pytest.mark.parametrize(("added_ns", "told"), [
    ({"total": 20 * MS, "error": MS}, " Profiling added 20.0 ms to the wall time, which the gain"),
    ({"total": 20 * MS, "estimated": True}, " Profiling added an estimated 20.0 ms to the wall"),
    ({"total": 4 * MS, "error": MS}, None),
])  # fmt: skip
def test_times_that_include_what_profiling_added_say_so(added_ns, told):
    walls = [30 * MS, *[10 * MS] * 7]
    (found,) = of_kind(repeats(walls, added_ns=added_ns), "warm-up")
    assert found.gain_ns == round(20 * MS * (1 - added_ns["total"] / (100 * MS)))
    if told:
        assert told in found.text
    else:
        assert "Profiling" not in found.text
