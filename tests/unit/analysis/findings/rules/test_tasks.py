"""Findings on a process whose threads run tasks that others hand out, as a Dask worker does."""

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.steps.launch_loops import launch_loop
from epprof_nb.data.schema import HOST_SAMPLES
from tests.helpers.tiny import call, kernel, op, profile, table
from tests.helpers.walked_stacks import stack_rows, with_stacks

MS = 1_000_000
LOOP, TASKS = 9, 1
PAUSES = [8, 3, 40, 8, 3, 60, 8, 8, 2, 8, 30, 8]
STACKS, (LAUNCH, WAIT, LOAD, POOL) = stack_rows(
    "lib/worker.py:run:1 m.py:task:3", "lib/worker.py:run:1 m.py:task:4",
    "lib/worker.py:run:1 m.py:load:9", "m.py:pool:12",
)  # fmt: skip
SOURCE = "def task(x):\n    x = load(x)\n    y = scale(x)\n    return y.get()\n"


def worker(*, launches=1):
    """Tasks of 10 ms on the host and launches that the task waits for; a pause after each."""
    ops = [op(1, "garbage collection", 0, MS, op_type="gc", thread_id=LOOP)]
    kernels, calls, begin = [], [], 2 * MS
    for pause in PAUSES:
        ops.append(op(len(ops) + 1, "load", begin, 0, op_type="task", thread_id=TASKS))
        end = begin
        for _ in range(launches):
            end += 10 * MS
            number = len(calls) + 1
            calls.append(call(end, end + 10_000, TASKS, correlation_id=number, stack_id=LAUNCH))
            kernels.append(
                kernel(end + 20_000, end + MS, len(ops), correlation_id=number, thread_id=TASKS)
            )
            calls.append(
                call(end + 20_000, end + MS, TASKS, name="cuStreamSynchronize", stack_id=WAIT)
            )
            end += MS
        ops[-1] = ops[-1] | {"end_ns": end, "duration_ns": end - begin}
        begin = end + pause * MS
    info = {"wall_ns": begin}
    return with_stacks(profile(ops, kernels, calls, info=info, sources={"m.py": SOURCE}), STACKS)


def test_idle_time_is_that_within_tasks_and_its_gain_too():
    found = worker().insights()
    between, before = found[found["kind"] == "idle"].to_dict("records")
    assert between["text"].startswith("Device idle 110 ms in 11 gaps of 10.0 ms (median) while")
    assert before["text"].startswith("Device idle 10.0 ms before its first work while")
    assert (between["gain_ns"], before["gain_ns"]) == (110 * MS, 10 * MS)


def test_samples_between_tasks_do_not_name_what_tasks_do():
    prof, samples = worker(), []
    for task in prof.ops[prof.ops["op_type"] == "task"].itertuples():
        samples += [(task.start_ns + at * MS, LOAD) for at in (2, 5)]
        samples += [(task.end_ns + at * MS // 4, POOL) for at in range(1, 7)]
    prof.tables["host_samples"] = table(HOST_SAMPLES, [
        {"thread_id": TASKS, "stack_id": stack, "interval_ns": MS, "start_ns": time}
        for time, stack in samples
    ])  # fmt: skip
    found = prof.insights()
    first = found.loc[found["kind"] == "idle", "text"].iloc[0]
    assert first.endswith("while the host ran `load` (m.py:9).")


def test_the_thread_of_the_tasks_is_that_of_the_critical_path():
    path = worker().critical_path()
    assert set(path.loc[path["step"] == "host", "thread_id"].dropna()) == {TASKS}


def test_tasks_are_no_turns_of_a_loop_and_do_not_wait_for_the_next():
    prof = worker()
    assert launch_loop(ProfileIndex(prof), 3) is None
    assert (prof.waits()["idle_after_ns"] == 0).all()
    assert not {"warm-up", "outliers"} & set(prof.insights()["kind"])


def test_a_loop_in_tasks_has_its_turns_and_waits():
    prof = worker(launches=4)
    loop = launch_loop(ProfileIndex(prof), 3)
    assert len(loop.start) == 3 * len(PAUSES)
    assert (loop.end - loop.start == 11 * MS).all()
    (row,) = prof.waits().to_dict("records")
    assert abs(row["idle_after_ns"] - 3 * len(PAUSES) * 10 * MS) < MS
