"""Findings on a slow first step: loops, repeats and training steps of a few rounds."""

import numpy as np
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.summary.headline import headline_of
from epprof_nb.data.schema import HOST_SAMPLES
from tests.helpers.planted import MS, info, of_kind, repeats
from tests.helpers.tiny import line, op, profile, table
from tests.helpers.walked_stacks import stack_rows, with_stacks


def loop(walls):
    """A loop on the host in line 1, whose body is line 2."""
    ends = np.cumsum(walls).tolist()
    ops = [line(1, 1, 0, ends[-1])]
    ops += [line(10 + i, 2, end - wall, end, 1)
            for i, (wall, end) in enumerate(zip(walls, ends, strict=True))]  # fmt: skip
    source = "for batch in batches:\n    train(batch)\n"
    return profile(ops, info=info(ends[-1]), sources={"In[1]": source})


def training(walls):
    """Steps of an optimizer inside one call."""
    ends = np.cumsum(walls).tolist()

    def of_torch(number, name, start, end, op_type):
        return op(number, name, start, end, 1, op_type=op_type, category="framework",
                  source="torch")  # fmt: skip

    ops = [line(1, 1, 0, ends[-1])]
    for i, (wall, end) in enumerate(zip(walls, ends, strict=True)):
        middle = end - wall // 4
        ops += [of_torch(10 + 2 * i, "model", end - wall, middle, "module"),
                of_torch(11 + 2 * i, "SGD.step", middle, end, "optimizer")]  # fmt: skip
    return profile(ops, info=info(ends[-1]), sources={"In[1]": "fit()\n"})


SLOW, STEADY = [900 * MS, 30 * MS, 31 * MS, 29 * MS, 30 * MS], [31 * MS, 30 * MS, 31 * MS, 29 * MS]


@pytest.mark.parametrize(
    ("make", "unit"), [(loop, "iterations of line 1"), (repeats, "repeats"), (training, "steps")]
)
def test_a_slow_first_step_is_named(make, unit):
    (found,) = of_kind(make(SLOW), "warm-up")
    assert found.text.startswith(f"The first of 5 {unit}")
    assert "took 900 ms, the others 30.0 ms (median)" in found.text
    assert found.gain_ns == 870 * MS
    assert found.end_ns == pytest.approx(900 * MS)
    assert not of_kind(make(STEADY), "warm-up")


@pytest.mark.parametrize("walls", [
    [900 * MS, 30 * MS],  # nothing shows what is usual
    [900 * MS, 30 * MS, 700 * MS, 31 * MS],  # the work differs
    [9 * MS, 1 * MS, 1 * MS, 1 * MS],  # as the first recorded calls
])  # fmt: skip
def test_no_finding_without_a_usual_time(walls):
    assert not of_kind(loop(walls), "warm-up")


def awaiting(walls, *frames, source="for p in ps:\n    p.wait()\n", load=True):
    """The same loop, whose first iteration is a wait in these frames, below those of line 2."""
    prof = loop(walls)
    prof.sources["In[1]"] = source
    rows, (stack,) = stack_rows(" ".join(["In[1]:2", *frames]))
    prof.tables["host_samples"] = table(
        HOST_SAMPLES,
        [{"start_ns": t, "stack_id": stack, "interval_ns": 10 * MS, "thread_id": 1}
         for t in range(MS, 890 * MS, 10 * MS)],
    )  # fmt: skip
    if load:
        prof.info["load"] = {"cores": 2, "own_cores": 0.02, "waiting": 0.0, "other_cores": 0.0}
    return with_stacks(prof, rows)


WAIT = ["lib/subprocess.py:Popen.wait:1264", "lib/subprocess.py:Popen._try_wait:2000"]
JOIN = ["lib/multiprocessing/process.py:BaseProcess.join:149", "lib/popen_fork.py:Popen.poll:27"]


@pytest.mark.parametrize("frames", [WAIT, JOIN])
@pytest.mark.parametrize("walls", [SLOW, [900 * MS, *[30 * MS] * 20]])
def test_a_wait_for_processes_from_before_the_loop_is_no_warm_up(frames, walls):
    prof = awaiting(walls, *frames)
    assert not of_kind(prof, "warm-up")
    (found,) = of_kind(prof, "hot line")
    assert "for most of that no thread of this process ran" in found.text
    assert of_kind(awaiting(walls, *frames, load=False), "warm-up")  # another thread may work


@pytest.mark.parametrize(("frames", "body"), [
    (["lib/subprocess.py:run:550", *WAIT], "run(['nvcc', source])"),
    (["lib/torch/cpp_extension.py:load:9", "lib/subprocess.py:run:550", *WAIT], "load(source)"),
    (["In[1]:build:9", *WAIT], "build(source)"),  # the function may have started it
    (["lib/subprocess.py:Popen.__init__:1026", *WAIT], "compiler(source).wait()"),
    (WAIT, "Popen(['gcc', source]).wait()"),  # no sample shows the start
])  # fmt: skip
def test_a_compilation_in_a_process_that_the_step_starts_is_warm_up(frames, body):
    (found,) = of_kind(awaiting(SLOW, *frames, source=f"for x in y:\n    {body}\n"), "warm-up")
    assert found.gain_ns == 870 * MS


def test_many_iterations_are_told_by_statistics_only():
    (found,) = of_kind(loop([900 * MS, *[30 * MS] * 20]), "warm-up")
    assert found.text.startswith("The first iteration")


def test_steadiness_has_the_steps_of_the_headline():
    prof = training([30 * MS] * 12)
    assert prof.steadiness()["phase"].tolist() == ["steady"] * 12
    assert headline_of(ProfileIndex(prof)).repeats.text.startswith("12 steps: mean 30.0 ms")
