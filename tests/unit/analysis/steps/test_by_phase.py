"""by_phase: prefill and decode of language models."""

from __future__ import annotations

import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.summary.headline import headline_of
from tests.helpers.tiny import kernel, op, profile


def call(op_id, start, end, tokens, past, *, session=1, batch=1, **more):
    """A run of a session that processed some tokens."""
    args = {"call_ns": 5, "batch": batch, "tokens": tokens, "past_tokens": past} | more
    kind = {"op_type": "run", "category": "session", "session": session}
    return op(op_id, "model_run", start, end, args=args, **kind)


def shown(frame, *names):
    return list(frame[["generation", "phase", *names]].itertuples(index=False, name=None))


def test_a_generation_has_a_prefill_and_a_decode():
    ops = [call(1, 0, 100, 7, 0, cache_bytes=0)]
    ops += [call(2 + i, 200 + 50 * i, 240 + 50 * i, 1, 7 + i, cache_bytes=70 + i) for i in range(3)]
    work = [kernel(10, 60, 1), kernel(210, 220, 2), kernel(265, 275, 3)]
    names = {"onnxruntime_sessions": {"1": "decoder.onnx"}}
    frame = profile(ops, work, info=names).by_phase()
    assert frame["model"].tolist() == ["decoder.onnx"] * 2
    assert shown(frame, "calls", "tokens", "past_tokens", "cache_bytes") == [
        (0, "prefill", 1, 7, 0, 0),
        (0, "decode", 3, 3, 7, 72),
    ]
    # The first phase lasts until the second begins, the second until its last call ends.
    assert frame["wall_ns"].tolist() == [200, 140]
    assert frame["ns_per_token"].tolist() == [28, 46]
    assert frame["tokens_per_s"].tolist() == [7 / 200e-9, 3 / 140e-9]
    assert frame["host_ns"].tolist() == [100, 120]
    assert frame["device_ns"].tolist() == [50, 20]
    assert frame["idle_ns"].tolist() == [150, 120]


US = 1_000


def recorded_runs(unit, *scatter):
    """A prompt of 220 units, 200 unprofiled, then recorded calls of 100, one that was not of 40."""
    calls = [call(1, 0, 220 * unit, 7, 0, call_ns=220 * unit, unprofiled_ns=200 * unit)]
    for i in range(12):
        start, length = (220 + 100 * i) * unit, (100 - (scatter[i % 2] if scatter else 0)) * unit
        calls.append(call(2 + i, start, start + length, 1, 7 + i, call_ns=length))
    more = {"call_ns": 40 * unit, "nodes": "not recorded"}
    return [*calls, call(14, 1_420 * unit, 1_460 * unit, 1, 19, **more)]


def test_the_rate_without_the_profiler():
    unit, calls = 10 * US, recorded_runs(10 * US)
    frame = profile(calls).by_phase()
    assert frame["wall_ns"].tolist() == [220 * unit, 1_240 * unit]
    assert frame["unprofiled_tokens_per_s"].tolist() == pytest.approx(
        [7 / (200e-9 * unit), 13 / (520e-9 * unit)]
    )
    # Without a run to compare with, the rate is not known.
    rates = profile(calls[:-1]).by_phase()["unprofiled_tokens_per_s"]
    assert rates.isna().tolist() == [False, True]
    slowed = [{"session": 1, "stretch": 2.0}]
    found = profile(calls[:-1], info={"onnxruntime_stretch": slowed}).by_phase()
    assert found["unprofiled_tokens_per_s"].tolist()[1] == pytest.approx(12 / (600e-9 * unit))


@pytest.mark.parametrize(("unit", "scatter"), [(US // 2, ()), (10 * US, (0, 50))])
def test_the_rate_without_the_profiler_is_missing_if_it_is_not_known_well(unit, scatter):
    """Short calls, or such whose times scatter."""
    frame = profile(recorded_runs(unit, *scatter)).by_phase()
    assert frame["unprofiled_tokens_per_s"].isna().tolist()[1]


def measured(*durations, unprofiled=300, **more):
    """Calls of some microseconds in turns of two sessions, of which each takes 50 more outside."""
    ops, at = [], 0
    for i, of_call in enumerate(durations):
        given = (1, 4 + i // 2) if i > 1 else (4, 0)
        times = {"call_ns": (of_call + 50) * US, "unprofiled_ns": unprofiled * US}
        ops.append(call(i + 1, at, at + of_call * US, *given, session=1 + i % 2, **times, **more))
        at += (of_call + 50) * US
    return ops


def test_runs_of_other_sessions_in_the_same_time_count():
    """Both loops last equally long, with and without the profiler."""
    durations = [350, 350, *[350, 450] * 4]
    frame = profile(measured(*durations, nodes="not recorded")).by_phase()
    decode = frame[frame["phase"] == "decode"]["unprofiled_tokens_per_s"]
    assert decode.tolist() == pytest.approx([decode.iloc[0]] * 2, rel=0.15)


def test_a_call_in_which_the_host_was_busy_takes_as_long_without_the_profiler():
    calls = [call(1, 0, 400 * US, 4, 0, call_ns=400 * US, unprofiled_ns=300 * US)]
    at = 500 * US
    for i, us in enumerate((400, 400, 9_400, 400, 400)):
        times = {"call_ns": us * US, "unprofiled_ns": 300 * US}
        calls.append(call(2 + i, at, at + us * US, 1, 4 + i, **times))
        at += us * US
    frame = profile(calls).by_phase()
    assert frame["wall_ns"].tolist()[1] == 11_000 * US
    assert frame["unprofiled_tokens_per_s"].tolist()[1] == pytest.approx(5 / (10_500e-6))


def test_what_profiling_added_gives_the_rate_of_calls_without_unprofiled_ones():
    more = {"op_type": "module", "category": "framework"}
    args = ({"tokens": 7 if i == 0 else 1, "past_tokens": 7 * (i > 0)} for i in range(2))
    calls = [
        op(1 + i, "model", 1_000 * i, 1_000 * i + 900, args=of_call, **more)
        for i, of_call in enumerate(args)
    ]
    info = {"wall_ns": 2_000, "added_ns": {"total": 500, "error": 9}}
    frame = profile(calls, info=info).by_phase()
    assert frame["unprofiled_tokens_per_s"].tolist() == pytest.approx([7 / 750e-9, 1 / 675e-9])


def test_the_rate_counts_all_sequences():
    ops = [call(1, 0, 10, 4, 0, batch=8), call(2, 10, 20, 1, 4, batch=8)]
    assert profile(ops).by_phase()["tokens_per_s"].tolist() == [32 / 10e-9, 8 / 10e-9]


def test_a_long_prompt_may_come_in_chunks():
    ops = [call(1, 0, 9, 64, 0), call(2, 10, 19, 64, 64), call(3, 20, 29, 5, 128)]
    ops += [call(4, 30, 39, 1, 133), call(5, 40, 49, 3, 134)]  # three tokens: a verified draft
    frame = profile(ops).by_phase()
    assert shown(frame, "calls", "tokens") == [(0, "prefill", 3, 133), (0, "decode", 2, 4)]


def test_generations_may_alternate():
    lengths = [(4, 0), (9, 0), (1, 4), (1, 9), (1, 10), (1, 5)]
    ops = [call(i + 1, 10 * i, 10 * i + 5, *given) for i, given in enumerate(lengths)]
    frame = profile(ops).by_phase()
    assert shown(frame, "past_tokens", "calls") == [
        (0, "prefill", 0, 1),
        (0, "decode", 4, 2),
        (1, "prefill", 0, 1),
        (1, "decode", 9, 2),
    ]


def test_many_tokens_after_a_decode_begin_the_next_turn():
    lengths = [(5, 0), (1, 5), (1, 6), (21, 7), (1, 28)]
    ops = [call(i + 1, 10 * i, 10 * i + 5, *given) for i, given in enumerate(lengths)]
    frame = profile(ops).by_phase()
    assert shown(frame, "tokens", "past_tokens") == [
        (0, "prefill", 5, 0),
        (0, "decode", 2, 5),
        (1, "prefill", 21, 7),
        (1, "decode", 1, 28),
    ]


def test_threads_with_prompts_of_the_same_length():
    lengths = [(5, 0), (1, 5), (1, 6), (1, 7)]
    ops = [
        call(8 * thread + i, 10 * i + thread, 10 * i + thread + 5, *given) | {"thread_id": thread}
        for i, given in enumerate(lengths)
        for thread in (1, 2, 3, 4)
    ]
    frame = profile(ops).by_phase()
    assert frame["phase"].tolist() == ["prefill", "decode"] * 4
    assert frame["calls"].tolist() == [1, 3] * 4


def test_a_call_of_another_thread_continues_the_newest_generation():
    calls = [(5, 0), (5, 0), (1, 5)]
    ops = [call(i, 10 * i, 10 * i + 5, *given) | {"thread_id": i} for i, given in enumerate(calls)]
    assert shown(profile(ops).by_phase()) == [(0, "prefill"), (1, "prefill"), (1, "decode")]


def test_turns_that_a_library_tells():
    told = [(0, 4, 0, 0), (0, 6, 4, 1), (1, 3, 8, 0), (0, 6, 8, 1)]  # drafts of five tokens
    ops = [
        call(i + 1, 10 * i, 10 * i + 5, tokens, past, turn=turn, decode=decode)
        for i, (turn, tokens, past, decode) in enumerate(told)
    ]
    assert shown(profile(ops).by_phase(), "calls", "tokens") == [
        (0, "prefill", 1, 4),
        (0, "decode", 2, 12),
        (1, "prefill", 1, 3),
    ]


def test_a_phase_that_begins_before_the_one_before_it_ends_has_a_duration():
    told = [(0, 20, 1, 4, 1), (30, 50, 4, 0, 0), (60, 70, 1, 5, 1)]
    ops = [
        call(i + 1, start, end, tokens, past, turn=0, decode=decode)
        for i, (start, end, tokens, past, decode) in enumerate(told)
    ]
    frame = profile(ops).by_phase()
    assert frame[["phase", "start_ns", "wall_ns"]].values.tolist() == [
        ["prefill", 30, 20],
        ["decode", 0, 70],
    ]
    assert (frame["tokens_per_s"] == frame["tokens"] * 1e9 / frame["wall_ns"]).all()


def test_a_call_that_ends_after_a_later_one_is_part_of_its_phase():
    ops = [call(1, 0, 90, 4, 0, turn=0, decode=0), call(2, 10, 20, 4, 4, turn=0, decode=0)]
    assert profile(ops).by_phase()["wall_ns"].tolist() == [90]


def test_models_do_not_continue_each_other():
    ops = [call(1, 0, 5, 4, 0), call(2, 10, 15, 1, 4, session=2), call(3, 30, 35, 1, 4)]
    frame = profile(ops).by_phase()
    assert shown(frame, "calls") == [
        (0, "prefill", 1),
        (0, "decode", 1),
        (1, "decode", 1),  # the profile began inside of a generation
    ]
    assert frame["model"].tolist() == ["session 1", "session 1", "session 2"]


def loop(*calls, pause=5, **more):
    """Calls of (tokens, past, batch), 10 ns each, with pauses."""
    return [
        call(i + 1, i * (10 + pause), i * (10 + pause) + 10, tokens, past, batch=batch, **more)
        for i, (tokens, past, batch) in enumerate(calls)
    ]


def test_beams_are_made_of_one_prompt_and_sequences_may_end():
    frame = profile(loop((9, 0, 1), (1, 9, 3), (1, 10, 3), (1, 11, 2), (1, 12, 1))).by_phase()
    assert shown(frame, "calls", "batch", "tokens") == [
        (0, "prefill", 1, 1, 9),
        (0, "decode", 4, 3, 4),
    ]
    # Each call counts its own sequences.
    assert frame["tokens_per_s"].tolist() == [9 / 15e-9, (3 + 3 + 2 + 1) / 55e-9]


def test_a_sliding_window_is_one_generation():
    prompts = [loop((12, 0, 1), *[(1, 8, 1)] * 4), loop((9, 0, 1), *[(1, 8, 1)] * 3)]
    later = [
        op | {"op_id": op["op_id"] + 9, "start_ns": op["start_ns"] + 100}
        | {"end_ns": op["end_ns"] + 100}
        for op in prompts[1]
    ]  # fmt: skip
    frame = profile(prompts[0] + later).by_phase()
    assert shown(frame, "calls", "past_tokens") == [
        (0, "prefill", 1, 0),
        (0, "decode", 4, 8),
        (1, "prefill", 1, 0),
        (1, "decode", 3, 8),
    ]
    assert frame["wall_ns"].tolist() == [15, 55, 15, 40]  # with the time between the calls
    assert "note" not in frame.attrs


def test_a_session_that_verifies_proposals():
    lengths = [(9, 0, 1), (4, 9, 1), (4, 13, 1), (4, 15, 1), (4, 16, 1)]
    assert shown(profile(loop(*lengths)).by_phase(), "calls", "tokens") == [
        (0, "prefill", 1, 9),
        (0, "decode", 4, 16),
    ]


def test_windows_of_generations_that_alternate_are_in_no_row():
    frame = profile(loop((9, 0, 1), (9, 0, 1), *[(1, 8, 1)] * 6)).by_phase()
    assert shown(frame, "calls") == [(0, "prefill", 1), (1, "prefill", 1)]
    assert frame.attrs["note"].startswith("No row has 6 calls: the KV cache fits several")


def test_modules_are_models_too():
    kind = {"op_type": "module", "category": "framework"}
    ops = [
        op(1, "model", 0, 10, args={"batch": 2, "tokens": 3, "past_tokens": 0}, **kind),
        op(2, "model.layers.0", 1, 9, 1, **kind),
        op(3, "model", 20, 30, args={"batch": 2, "tokens": 1, "past_tokens": 3}, **kind),
    ]
    frame = profile(ops, [kernel(3, 5, 2)]).by_phase()
    assert frame["model"].tolist() == ["model", "model"]
    assert frame["device_ns"].tolist() == [2, 0]


@pytest.mark.parametrize("bad", ["x", None, -1, True, 2**63, 2**41, 1.5, [1]])
def test_arguments_of_another_type_are_no_call(bad):
    ops = [call(1, 0, 10, bad, 0), call(2, 20, 30, 4, bad), call(3, 40, 50, 2, 0, batch=bad)]
    frame = profile(ops).by_phase()
    assert frame["tokens"].tolist() == [2]
    assert frame["batch"].isna().all()


def test_ranges_of_the_user_are_no_calls():
    ops = [op(1, "step", 0, 10, args={"tokens": 4, "past_tokens": 0}, category="user")]
    frame = profile(ops).by_phase()
    assert len(frame) == 0
    assert "No language model with a KV cache was called" in frame.attrs["note"]


def test_a_note_says_if_no_call_continues_another():
    ops = [call(i + 1, 10 * i, 10 * i + 5, 4 + i, 0) for i in range(3)]
    frame = profile(ops).by_phase()
    assert frame["phase"].tolist() == ["prefill"] * 3
    assert "use_cache=True" in frame.attrs["note"]


def test_the_summary_has_the_decode_steps():
    ops = [call(1, 0, 1_000_000, 7, 0)]
    ops += [call(2 + i, (2 + i) * 10**6, int((2.5 + i) * 10**6), 1, 7 + i) for i in range(5)]
    text = headline_of(ProfileIndex(profile(ops))).repeats.text
    assert text.startswith("5 decode steps: mean 900 µs, median 1.00 ms")
    assert text.endswith("; prefill: 7 tokens in 2.00 ms")
    assert headline_of(ProfileIndex(profile(ops[:4]))).repeats is None


def test_decode_steps_of_two_models_in_turns_are_not_counted_twice():
    """A call of the target takes 3 ms, each of two calls of the draft model 1 ms."""
    ms, lengths = 10**6, [(4, 0, 2), (4, 0, 1)]
    for i in range(4):
        lengths += [(1, 4 + 2 * i, 1), (1, 5 + 2 * i, 1), (1, 4 + i, 2)]
    ops, at = [], 0
    for i, (tokens, past, session) in enumerate(lengths):
        ops.append(call(i + 1, at, at + ms // 2, tokens, past, session=session))
        at += 3 * ms if session == 2 else ms
    text = headline_of(ProfileIndex(profile(ops))).repeats.text
    assert text.startswith("12 decode steps: mean 1.42 ms, median 1.00 ms")
    assert text.endswith("; prefill: 8 tokens in 4.00 ms")


def test_models_with_one_cache_do_not_continue_each_other():
    kind = {"op_type": "module", "category": "framework"}
    lengths = [("target", 4, 0), ("draft", 1, 4), ("draft", 1, 5), ("target", 1, 4)]
    ops = [
        op(
            i + 1, name, 10 * i, 10 * i + 5,
            args={"tokens": tokens, "past_tokens": past, "turn": 0}, **kind,
        )
        for i, (name, tokens, past) in enumerate(lengths)
    ]  # fmt: skip
    frame = profile(ops).by_phase()
    assert frame["model"].tolist() == ["target", "target", "draft"]
    assert shown(frame, "calls") == [(0, "prefill", 1), (0, "decode", 1), (1, "decode", 2)]
