"""Collectives of hand-made ranks: what belongs together, who waited, and what is not stated."""

import pytest

from epprof_nb.analysis.ranks.collective_kinds import kind_of_call, kind_of_kernel
from epprof_nb.analysis.ranks.collectives import (
    clock_residuals,
    collective_notes,
    collectives_table,
)
from epprof_nb.analysis.ranks.ranks_on_one_clock import Ranks
from epprof_nb.analysis.ranks.stragglers import judged_collectives
from tests.helpers.tiny import call, kernel, op, profile

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def payload(number, name, start, communicator, size=None, end=None, **more):
    args = {"domain": "NCCL", "NCCL communicator ID": communicator}
    if size is not None:
        args["Message size [bytes]"] = size
    return op(number, name, start, start + 1 if end is None else end, args=args | more)


def rank_of(*kernels, calls=()):
    """A profile of kernels, given as (name, launch, start, end), and of calls with payloads."""
    rows = [
        kernel(start, end, name=name, correlation_id=i, thread_id=1, **(more[0] if more else {}))
        for i, (name, _, start, end, *more) in enumerate(kernels, 1)
    ]
    launches = [
        call(launch, launch + 1, correlation_id=i) for i, (_, launch, *_) in enumerate(kernels, 1)
    ]
    return profile(calls, rows, launches, info={"wall_ns": 10_000})


def table(profiles, begin=None, error=None):
    ranks = Ranks(dict(enumerate(profiles)), begin or dict.fromkeys(range(len(profiles)), 0),
                  error or {})  # fmt: skip
    return collectives_table(ranks).to_frame(), collective_notes(ranks)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (ALL_REDUCE, "all_reduce"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_gather"),
        ("ncclDevKernel_AllGatherV_RING_LL(ncclDevKernelArgs4K)", "all_gather"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(...)", "reduce_scatter"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL(...)", "reduce"),
        ("ncclDevKernel_Broadcast_RING_LL(...)", "broadcast"),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgs4K)", "send_receive"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
         "all_reduce"),
        ("ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_f32(...)", "all_reduce"),
        ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "all_reduce"),
        ("ncclDevKernel_Generic(ncclDevKernelArgs4K)", "unknown"),
        ("void ncclDevKernel_Generic_4<...>", "unknown"),
        ("mscclKernel_Sum_half_Simple_false", "unknown"),
        ("ampere_sgemm_all_reduce_64", None),
        ("reduce_kernel<float>", None),
        ("ncclWaitKernelOfMine", "unknown"),
    ],
)  # fmt: skip
def test_kinds_of_kernels(name, kind):
    assert kind_of_kernel(name) == kind


def test_kinds_of_calls():
    names = ["ncclAllReduce", "AllGather", "ncclSend", "ncclRecv", "reduce_scatter_tensor"]
    kinds = ["all_reduce", "all_gather", "send", "receive", "reduce_scatter"]
    assert [kind_of_call(name) for name in names] == kinds


def test_arrival_waiting_and_transfer():
    early = rank_of((ALL_REDUCE, 90, 100, 500), calls=[payload(1, "ncclAllReduce", 80, 7, 64)])
    late = rank_of((ALL_REDUCE, 290, 300, 502), calls=[payload(1, "ncclAllReduce", 280, 7, 64)])
    frame, notes = table([early, late], {0: 1_000, 1: 1_050})
    assert frame["kind"].tolist() == ["all_reduce"] * 2
    assert frame["communicator"].tolist() == ["0x7"] * 2
    assert frame["bytes"].tolist() == [64, 64]
    assert frame["arrive_ns"].tolist() == [1100, 1350]
    assert frame["waited_ns"].tolist() == [250, 0]
    assert frame["late_ns"].tolist() == [0, 250]
    assert frame["transfer_ns"].tolist() == [150, 202]
    assert frame["matched_by"].tolist() == ["communicator"] * 2
    assert "52 ns" in " ".join(notes)


def test_the_kernels_of_a_group_follow_its_calls():
    calls = [
        payload(1, "ncclAllReduce", 10, 7, 64), payload(2, "ncclAllGather", 12, 8, 32),
        payload(3, "ncclAllReduce", 300, 7, 16), payload(4, "ncclAllReduce", 302, 7, 16),
    ]  # fmt: skip
    gather = "ncclDevKernel_AllGather_RING_LL"
    one = rank_of((ALL_REDUCE, 20, 30, 90), (gather, 22, 100, 200), (ALL_REDUCE, 310, 320, 400),
                  calls=calls)  # fmt: skip
    frame, _ = table([one, one])
    own = frame[frame["rank"] == 0]
    assert own["communicator"].tolist() == ["0x7", "0x8", "0x7"]
    assert own["bytes"].tolist() == [64, 32, 32]  # one kernel served two calls


def test_sends_to_all_ranks_are_an_all_to_all():
    calls = [
        payload(i, name, i, 7, 8, **{"Peer rank": peer})
        for i, (name, peer) in enumerate(
            (n, p) for p in (0, 1) for n in ("ncclSend", "ncclRecv")
        )
    ]  # fmt: skip
    one = rank_of(("ncclDevKernel_SendRecv", 20, 30, 90), calls=calls)
    frame, _ = table([one, one])
    assert frame["kind"].tolist() == ["all_to_all"] * 2
    assert frame["bytes"].tolist() == [32, 32]
    assert frame["waited_ns"].notna().all()


def test_broadcasts_sends_and_receives_have_a_duration_only():
    names = ["ncclDevKernel_Broadcast_RING_LL", "ncclDevKernel_SendRecv"]
    one = rank_of(*((n, i * 100, i * 100 + 5, i * 100 + 25) for i, n in enumerate(names)))
    frame, _ = table([one, one])
    assert frame["duration_ns"].tolist() == [20] * 4
    assert frame[["waited_ns", "transfer_ns", "late_ns"]].isna().all(axis=None)


def test_without_payloads_the_order_on_the_stream_decides():
    one = rank_of((ALL_REDUCE, 1, 10, 100), (ALL_REDUCE, 101, 110, 200))
    other = rank_of((ALL_REDUCE, 1, 50, 100), (ALL_REDUCE, 101, 150, 200))
    frame, _ = table([one, other])
    assert frame["matched_by"].tolist() == ["order"] * 4
    assert frame["waited_ns"].tolist() == [40, 0, 40, 0]


def test_different_counts_are_not_matched_and_said():
    one = rank_of((ALL_REDUCE, 1, 10, 100), (ALL_REDUCE, 101, 110, 200))
    other = rank_of((ALL_REDUCE, 1, 50, 100))
    for calls in ([], [payload(1, "ncclAllReduce", 0, 7), payload(2, "ncclAllReduce", 100, 7)]):
        first = rank_of((ALL_REDUCE, 1, 10, 99), (ALL_REDUCE, 101, 110, 200), calls=calls)
        second = rank_of((ALL_REDUCE, 1, 50, 99), calls=calls[:1])
        frame, notes = table([first, second])
        assert frame["waited_ns"].isna().all()
        assert any("different numbers" in note and "1 on rank 1" in note for note in notes)
    del one, other


def test_kernels_that_end_before_others_arrive_are_not_the_same_collective():
    one = rank_of((ALL_REDUCE, 1, 10, 100), (ALL_REDUCE, 50_001, 50_010, 50_200))
    other = rank_of((ALL_REDUCE, 1, 40_050, 50_100), (ALL_REDUCE, 80_101, 90_150, 90_200))
    frame, notes = table([one, other])
    assert frame["waited_ns"].isna().all()
    assert any("before all ranks had arrived" in note for note in notes)


def test_different_kinds_are_not_matched():
    one = rank_of((ALL_REDUCE, 1, 10, 100))
    other = rank_of(("ncclDevKernel_AllGather_RING_LL", 1, 10, 100))
    frame, notes = table([one, other])
    assert frame["waited_ns"].isna().all()
    assert any("kinds differ" in note for note in notes)


def test_orders_closer_than_the_clock_error_are_not_stated():
    one, other = rank_of((ALL_REDUCE, 1, 10, 100)), rank_of((ALL_REDUCE, 1, 50, 100))
    frame, _ = table([one, other], error={1: 60})
    assert frame["waited_ns"].isna().tolist() == [True, False]
    assert frame["late_ns"].isna().tolist() == [False, True]


def test_replays_are_matched_by_their_order_and_not_with_launches():
    graph = {"graph_node_id": 3, "graph_id": 1}
    first = rank_of((ALL_REDUCE, 1, 10, 20, graph), (ALL_REDUCE, 30, 40, 50))
    second = rank_of((ALL_REDUCE, 1, 15, 20, graph), (ALL_REDUCE, 30, 42, 50))
    frame, _ = table([first, second])
    assert frame["waited_ns"].tolist() == [5, 0, 2, 0]


def host_call(number, name, start, wait_end=None, seq=1, size=2):
    args = {"communicator": "0", "ranks": size, "number": seq, "bytes": 8}
    rows = [op(number, name, start, start + 2, op_type="collective", args=args)]
    if wait_end is not None:
        rows.append(op(number + 1, f"wait for {name}", start + 3, wait_end,
                       op_type="collective_wait", args=args))  # fmt: skip
    return rows


def test_calls_on_the_host_are_matched_by_their_number():
    one = profile([*host_call(1, "all_reduce", 10, 50, 4), *host_call(3, "barrier", 60, 80, 5)])
    other = profile(host_call(1, "barrier", 70, None, 5))
    frame, notes = table([one, other])
    assert not any("residual of the clocks" in note for note in notes)  # waits end when they do
    assert frame["kind"].tolist() == ["all_reduce", "barrier", "barrier"]
    assert frame["waited_ns"].astype("object").where(frame["waited_ns"].notna(), None).tolist() == [
        None, 10, 0,
    ]  # fmt: skip
    assert frame["transfer_ns"].isna().tolist() == [True, False, True]


def test_a_communicator_of_which_a_rank_is_missing_has_no_waiting_times():
    one, other = (profile(host_call(1, "all_reduce", at, size=3)) for at in (10, 50))
    frame, notes = table([one, other])
    assert frame["waited_ns"].isna().all()
    assert any("has 3 ranks, of which 2 were recorded" in note for note in notes)


def test_the_residual_of_the_clocks_is_reported_and_shifts_nothing():
    one = rank_of(*((ALL_REDUCE, t, t + 10, t + 100) for t in range(0, 3_000, 200)))
    shifted = rank_of(*((ALL_REDUCE, t, t + 50, t + 140) for t in range(0, 3_000, 200)))
    ranks = Ranks({0: one, 1: shifted}, {0: 0, 1: 0})
    residuals = clock_residuals(ranks)
    assert residuals[1] - residuals[0] == 40
    assert collectives_table(ranks)["arrive_ns"].tolist()[:2] == [10, 50]


def test_the_last_meeting_of_some_ranks_may_be_one_of_more():
    def rank(*communicators):
        kernels = [(ALL_REDUCE, t, t + 10, t + 90) for t in range(0, 100 * len(communicators), 100)]
        calls = [payload(i, "ncclAllReduce", 100 * i, of) for i, of in enumerate(communicators)]
        return rank_of(*kernels, calls=calls)

    ranks = Ranks({0: rank(7, 8), 1: rank(7, 8), 2: rank(7)}, dict.fromkeys(range(3), 0))
    assert [sorted(one.spent_ns.items()) for one in judged_collectives(ranks)] == [
        [(0, 100), (1, 100)]
    ]


def test_a_job_without_collectives_is_empty():
    frame, notes = table([profile(), profile()])
    assert len(frame) == 0
    assert notes == []
    assert frame["waited_ns"].dtype == "Int64"
