"""Sides that were recorded differently: the cost of recording is not reported as a change."""

import pytest

from epprof_nb import compare
from epprof_nb import profile as record
from epprof_nb.core.options import Options
from tests.helpers.repeated import MS, TIMES, repeated
from tests.helpers.tiny import line, op, profile


def runs(recorded, *, call=None, mode=None, repeats=12):
    """Repeats of a run of 80 us without the profiler, some recorded node by node at 10 times that.

    `call` is the time of the other runs.
    """
    ops, bounds = [], []
    for repeat in range(repeats):
        start = 10_000_000 * repeat
        is_recorded = recorded * (repeat + 1) // repeats > recorded * repeat // repeats
        took = 800_000 if is_recorded else call or 80_000
        args = {"nodes": "recorded" if is_recorded else "not recorded"}
        if call is not None:
            args |= {"call_ns": took, "unprofiled_ns": 80_000}
        more = {"repeat": repeat, "session": 0, "op_type": "run", "category": "session"}
        ops.append(op(repeat + 1, "run", start, start + took, args=args, **more))
        bounds.append([start, start + took + 100])
    info = {"repeats": bounds} | ({"recording": {"ort_nodes": mode}} if mode else {})
    return profile(ops, info=info)


@pytest.mark.parametrize("call", [80_000, None])
@pytest.mark.parametrize("modes", [("auto", "every"), (None, None)])
def test_runs_recorded_node_by_node_are_not_called_slower(call, modes):
    old, new = runs(2, call=call, mode=modes[0]), runs(12, call=call, mode=modes[1])
    for pair in ((old, new), (new, old)):
        result = compare(*pair)
        assert result.verdict == "cannot be compared"
        assert "2 of 12 runs" in result.reason
        assert "12 of 12 runs" in result.reason
        assert "`--ort-nodes every`" in result.reason
        assert set(result.ops["verdict"]) == {"not tested"}
        assert result.change_low is None
    assert ("1.00 and 10.0 times as long" in compare(old, new).reason) == (call is not None)
    allowed = compare(old, new, allow=["options"])
    assert allowed.verdict != "cannot be compared"
    # The reason for refusing becomes a limit of the comparison.
    assert "The sides were not recorded alike" in repr(allowed)
    for text in ("cannot be compared", "Record both"):
        assert text not in repr(allowed)


@pytest.mark.parametrize(("recorded", "others"), [(2, 12), (5, 7), (9, 0)])
@pytest.mark.parametrize("call", [80_000, None])
def test_how_many_runs_were_sampled_with_one_option_is_no_reason_to_refuse(recorded, others, call):
    sides = [runs(count, call=call, mode="auto") for count in (recorded, others)]
    for pair in (sides, sides[::-1]):
        result = compare(*pair)
        # The actual or possible cost of recording nodes is not reported as a change of the code.
        assert result.verdict == "cannot tell"
        assert f"ONNX Runtime's nodes were recorded in {recorded} of 12 runs" in result.reason
        assert "--interleave" in result.reason


def test_a_change_larger_than_the_cost_of_sampling_is_found():
    def sampled(recorded, load):
        prof = runs(recorded, call=80_000, mode="auto")
        bounds = [[start, start + load + end - start] for start, end in prof.info["repeats"]]
        prof.info["repeats"] = bounds
        return prof

    result = compare(sampled(5, 3 * MS), sampled(7, MS))
    assert result.verdict == "faster"
    # The interval has the cost of the new side: 0.72 of the 1.8 ms of its median repeat.
    assert result.change_low < -0.75
    same = compare(sampled(5, 80 * MS), sampled(7, 80 * MS))
    assert same.verdict == "no difference found"


def test_recording_that_cost_both_sides_the_same_is_no_reason():
    # The median repeat is not affected by the two that were recorded.
    assert compare(runs(0, call=80_000, mode="off"), runs(2, call=80_000, mode="auto")).verdict == (
        "no difference found"
    )
    assert compare(runs(12, mode="every"), runs(12, mode="every")).verdict == "no difference found"
    unknown = compare(runs(0, mode="off"), runs(1, mode="auto"))
    assert unknown.verdict == "no difference found"


def test_a_few_recorded_runs_in_each_repeat_count_if_the_modes_differ():
    def decoding(recorded, mode):
        ops, bounds = [], []
        for repeat in range(12):
            for number in range(20):
                start = 10_000_000 * repeat + 100_000 * number
                state = "recorded" if number < recorded else "not recorded"
                more = {"repeat": repeat, "session": 0, "op_type": "run", "category": "session"}
                row = op(20 * repeat + number + 1, "run", start, start + 80_000, **more)
                ops.append(row | {"args": {"nodes": state}})
            bounds.append([10_000_000 * repeat, 10_000_000 * repeat + 2_000_000])
        return profile(ops, info={"repeats": bounds, "recording": {"ort_nodes": mode}})

    assert compare(decoding(0, "auto"), decoding(1, "auto")).verdict == "no difference found"
    result = compare(decoding(0, "off"), decoding(1, "auto"))
    assert result.verdict == "cannot be compared"
    assert "0 of 240 runs of the old one and in 12 of 240 runs of the new" in result.reason


GPU = {"recording": {"detail": "default", "frameworks": ["torch", "nvtx"], "waits": False}}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"detail": "api,memory"}, "`--detail default` in the old one, `--detail api,memory`"),
        ({"waits": True}, "`new.baseline`"),
    ],
)
def test_times_of_a_gpu_are_compared_all_the_same(change, text):
    slow = TIMES | {"y = model(x)": 12 * MS}
    other = {"recording": GPU["recording"] | change}
    result = compare(repeated(TIMES, **GPU), repeated(slow, seed=1, **other))
    assert result.verdict == "cannot be compared"
    assert result.change_low is None
    assert text in result.reason
    assert "Device times are compared anyway. Changed: `y = model(x)` +" in result.reason
    assert "slower" in set(result.kernels["verdict"])
    same = compare(repeated(TIMES, **other), repeated(slow, seed=1, **other))
    assert same.verdict == "slower"
    # Times of the host device are host times.
    host = {"devices": [{"device_id": 0, "name": "GPU X", "kind": "host"}]}
    if "waits" in change:
        both = repeated(TIMES, **GPU, **host), repeated(slow, seed=1, **other, **host)
        assert set(compare(*both).kernels["verdict"]) == {"not tested"}


def test_what_the_code_does_not_use_is_no_difference():
    without = {"recording": GPU["recording"] | {"detail": "operators", "frameworks": ["nvtx"]}}
    assert compare(repeated(TIMES, **GPU), repeated(TIMES, **without)).verdict == (
        "no difference found"
    )


def calls(*, source=None, category=None, lines=0, **recording):
    ops, bounds = [], []
    for repeat in range(12):
        start = 1000 * repeat
        made = {"source": source, "category": category, "repeat": repeat}
        ops.append(op(100 * repeat + 1, "part", start, start + 800, **made))
        if lines:
            row = line(100 * repeat + 2, 1, start, start + 800, repeat=repeat, count=lines)
            ops.append(row)
        bounds.append([start, start + 900])
    return profile(ops, info={"repeats": bounds, "wall_ns": 12_000, "recording": recording})


def test_frameworks_operators_and_statements_that_one_side_recorded_are_named():
    with_torch = calls(source="torch", frameworks=["torch"])
    reason = compare(with_torch, calls(frameworks=[])).reason
    assert "the framework torch was recorded only in the old one" in reason
    operators = calls(source="torch", category="operator", detail="shapes", frameworks=["torch"])
    reason = compare(with_torch, operators).reason
    assert "`--detail default` in the old one, `--detail operators,shapes` in the new" in reason
    assert "statements were recorded only in the new" in compare(calls(), calls(lines=3)).reason
    imported = calls()
    imported.info["trace_format"] = "Kineto"
    assert "the old one by epprof_nb, the new one by Kineto" in compare(calls(), imported).reason


def test_a_profile_says_how_it_was_recorded():
    inside = record(detail="all", ort_nodes="every", frameworks=["torch"])
    with record(frameworks=["nvtx"]) as outer, inside as inner:
        pass
    assert inner.info["recording"] == {
        "detail": "api,memory,overhead",
        "frameworks": ["torch", "nvtx"],
        "ort_nodes": "every",
        "samples": True,
        "stacks": True,
        "waits": False,
    }
    # The options of the inner one applied while the outer one ran.
    assert set(outer.info["recording"]["frameworks"]) == {"torch", "nvtx"}
    with record() as plain:
        pass
    assert plain.info["recording"]["frameworks"] == list(Options().frameworks)
    assert plain.info["recording"]["detail"] == "default"


def test_a_refusal_says_how_much_profiling_added():
    sides = [calls(), calls(lines=3)]
    assert "(about" not in compare(*sides).reason
    for side, percent in zip(sides, (0, 25), strict=True):
        wall = side.info["wall_ns"]
        side.info["added_ns"] = {"total": wall - round(wall / (1 + percent / 100)), "error": 1}
    assert "(about 0 % of the old one, 25 % of the new)" in compare(*sides).reason
