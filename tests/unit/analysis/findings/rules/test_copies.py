"""Findings about copies and communication: planted, and without the cause."""

import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.rules.copies.exposed_communication import exposed_communication
from tests.helpers.planted import MS, US, info, of_kind
from tests.helpers.tiny import activity, call, kernel, line, op, profile


@pytest.mark.parametrize("pinned", [False, True])
def test_pageable_copies_are_measured_against_pinned_ones(pinned):
    copies = [
        activity("memcpy", i * 2 * MS, (i * 2 + 1) * MS, 1, bytes=10**7, copy_kind="HtoD",
                 src_kind="pageable", dst_kind="device")
        for i in range(10)
    ]  # fmt: skip
    if pinned:
        copies.append(activity("memcpy", 30 * MS, 31 * MS, 1, bytes=4 * 10**7, copy_kind="HtoD",
                               src_kind="pinned", dst_kind="device"))  # fmt: skip
    prof = profile([line(1, 1, 0, 40 * MS)], copies, info=info(40 * MS))
    (found,) = of_kind(prof, "pageable copies")
    assert found.gain_ns == (7.5 * MS if pinned else 5 * MS)
    assert found.low_ns == (found.gain_ns // 2 if pinned else 0)
    assert found.evidence_rows(prof).tolist() == list(range(10))
    row = prof.transfers().iloc[0]
    assert row["bandwidth"] == 1e10
    assert row["peak_bandwidth"] == (4e10 if pinned else 1e10)
    assert row[["copies", "same_size", "exposed_ns"]].tolist() == [10, 9, 10 * MS]


@pytest.mark.parametrize("known", ["measured", "pcie", "other GPU", "damaged", "none"])
def test_pageable_copies_are_measured_against_the_link(known):
    copies = [
        activity("memcpy", i * 2 * MS, (i * 2 + 1) * MS, 1, bytes=10**7, copy_kind="HtoD",
                 src_kind="pageable", dst_kind="device")
        for i in range(10)
    ]  # fmt: skip
    gpu = {"name": "GPU", "pcie_generation": 5, "pcie_lanes": 16}
    peaks = {"flops_per_s": {}, "bytes_per_s": 4e12, "link_bytes_per_s": {"HtoD": 5e10}}
    more = {
        "measured": {"peaks": {"0": peaks}, "gpu": {"before": {"gpus": [gpu]}}},
        "pcie": {"gpu": {"before": {"gpus": [gpu]}}},
        "other GPU": {"gpu": {"before": {"gpus": [gpu | {"name": "another"}]}}},
        "damaged": {"gpu": {"before": {"gpus": [7, gpu | {"pcie_lanes": "x"}]}}},
        "none": {},
    }[known]
    prof = profile([line(1, 1, 0, 40 * MS)], copies, info=info(40 * MS, **more))
    (found,) = of_kind(prof, "pageable copies")
    # 100 MB take 10 ms, 2 ms at 50 GB/s, 1.8 ms at 87 % of 63 GB/s, or half of the time at best.
    saved = {"measured": 8 * MS, "pcie": 10 * MS - round(1e17 / (0.87 * 16 * 3.938e9))}
    assert found.gain_ns == pytest.approx(saved.get(known, 5 * MS), abs=1)
    assert (found.low_ns == 0) == (known not in saved)
    assert prof.transfers()["peak_bandwidth"].item() == pytest.approx(
        {"measured": 5e10, "pcie": 0.87 * 16 * 3.938e9}.get(known, 1e10)
    )


def pipeline(overlapping, compute=3 * MS):
    """Copies of 2 ms and kernels of 3 ms in turn, or each copy beside the kernel before it."""
    rows = []
    for i in range(10):
        t = i * (3 if overlapping else 5) * MS
        rows.append(activity("memcpy", t, t + 2 * MS, 1, stream_id=8, bytes=10**6,
                             copy_kind="HtoD", src_kind="pinned", dst_kind="device"))  # fmt: skip
        start = t + (3 if overlapping else 2) * MS
        rows.append(kernel(start, start + compute, 2))
    ops = [line(1, 1, 0, 60 * MS), line(2, 2, 0, 60 * MS)]
    return profile(ops, rows, info=info(60 * MS))


def test_copies_that_could_overlap_are_found():
    (found,) = of_kind(pipeline(overlapping=False), "copies that could overlap")
    assert found.gain_ns == 18 * MS
    (found,) = of_kind(pipeline(overlapping=False, compute=MS), "copies that could overlap")
    assert found.gain_ns == found.high_ns == 10 * MS  # there is no more to overlap with
    assert not of_kind(pipeline(overlapping=True), "copies that could overlap")


@pytest.mark.parametrize(
    ("is_hidden", "compute"), [(False, 20 * MS), (False, 10 * MS), (True, 20 * MS)]
)
def test_communication_that_nothing_hides_is_found(is_hidden, compute):
    rows = []
    for i in range(5):
        t = 10 * i * MS
        rows.append(kernel(t, t + (6 * MS if compute == 20 * MS else 2 * MS), 1))
        start = t + (1 if is_hidden else 6) * MS
        rows.append(kernel(start, start + 4 * MS, 2, name="ncclDevKernel_AllReduce_Sum_f32",
                           stream_id=9))  # fmt: skip
    source = "loss.backward()\nreduce(gradients)\n"
    prof = profile([line(1, 1, 0, 50 * MS), line(2, 2, 0, 50 * MS)], rows, info=info(50 * MS),
                   sources={"In[1]": source})  # fmt: skip
    found = of_kind(prof, "exposed communication")
    assert len(found) == (not is_hidden)
    if found:
        assert found[0].text == (
            "GPU 0 only communicated for 20.0 ms (40 % of its span), most of all in line 2 "
            "(`reduce(gradients)`)."
        )
        assert (found[0].low_ns, found[0].gain_ns) == (0, compute)
        assert found[0].high_ns == compute
        assert found[0].evidence_rows(prof).tolist() == [1, 3, 5, 7, 9]


def test_communication_that_ends_before_it_starts_is_not_the_longest():
    name = "ncclDevKernel_AllReduce_Sum_f32"
    damaged = kernel(5, 5, 1, name=name) | {"end_ns": -(2**63) + 1}
    ops = [line(1, 1, 0, 50 * MS), line(2, 2, 0, 50 * MS)]
    rows = [damaged, kernel(0, 10 * MS, 2, name=name), kernel(10 * MS, 20 * MS, 1)]
    (found,) = exposed_communication(ProfileIndex(profile(ops, rows)))
    assert found.text.endswith("most of all in line 2.")
    assert not list(exposed_communication(ProfileIndex(profile([], [damaged]))))


@pytest.mark.filterwarnings("error")
def test_times_at_the_end_of_64_bits_are_averaged():
    prof = profile([op(1, "a", 0, 2**63 - 1), op(2, "b", 0, 10, count=2)], [kernel(0, 5, 1)])
    mean_ns = prof.by_op()["mean_host_ns"].tolist()
    assert mean_ns[0] > 2**62
    assert mean_ns[1] == 5
    queued = kernel(2**63 - 9, 2**63 - 1, correlation_id=1)
    late = profile([], [queued], [call(0, 1, correlation_id=1)])
    assert late.by_kernel()["launch_delay_ns"].tolist() == [2**61]


@pytest.mark.parametrize(("count", "lines"), [(20, 1), (200, 1), (90, 2)])
def test_many_small_copies_of_a_line_are_found(count, lines):
    copies = [
        activity("memcpy", i * 10 * US, i * 10 * US + 5 * US, 1 + i % lines, bytes=4,
                 copy_kind="DtoH", src_kind="device", dst_kind="pageable")
        for i in range(count)
    ]  # fmt: skip
    ops = [line(1 + i, 1 + i, 0, 2 * MS) for i in range(lines)]
    found = of_kind(profile(ops, copies, info=info(2 * MS)), "small copies")
    assert [f.gain_ns for f in found] == ([199 * 5 * US] if count == 200 else [])


def samples_one_by_one(*, count=200, kernels=0, kernels_at=None):
    """Copies of 3 KB, each with 25 us of the host and a wait of 5 us; then kernels.

    `kernels_at` is the op of these.
    """
    work, calls, now = [], [], 0
    for _ in range(count):
        now += 15 * US
        begun = now
        now += 5 * US
        calls.append(call(begun, now, correlation_id=len(calls), name="cuMemcpyHtoDAsync_v2"))
        work.append(activity("memcpy", now, now + US, bytes=3072, copy_kind="HtoD",
                             src_kind="pageable", dst_kind="device",
                             correlation_id=len(calls) - 1, thread_id=1, op_id=1))  # fmt: skip
        calls.append(call(now, now + 5 * US, correlation_id=len(calls),
                          name="cuStreamSynchronize"))  # fmt: skip
        now += 5 * US
        for _ in range(kernels):
            calls.append(call(now, now + US, correlation_id=len(calls)))
            work.append(kernel(now + US, now + 2 * US, correlation_id=len(calls) - 1, thread_id=1,
                               **({"op_id": kernels_at} if kernels_at else {})))  # fmt: skip
            now += US
    return profile([line(1, 1, 0, now)], work, calls, info=info(now),
                   sources={"In[1]": "z = stack([s.cuda() for s in samples])\n"})  # fmt: skip


def test_small_copies_one_by_one_cost_the_host_more_than_the_device():
    prof = samples_one_by_one()
    (found,) = of_kind(prof, "small copies")
    assert found.text == (
        "200 small copies (614 kB in all) in line 1 (`z = stack([s.cuda() for s in samples])`) "
        "took 200 µs, 4.97 ms on the host."
    )
    # The first copy remains, and 614 kB are gathered.
    assert found.gain_ns == pytest.approx(199 * 25 * US - 307 * US, rel=0.01)
    assert found.low_ns < found.gain_ns < found.high_ns


def test_copies_between_kernels_keep_the_time_of_the_host():
    """A value that each turn copies anew cannot be gathered before the loop."""
    (found,) = of_kind(samples_one_by_one(kernels=1), "small copies")
    assert found.gain_ns == 199 * US


@pytest.mark.parametrize("kernels", [1, 2])
def test_a_launch_that_puts_each_value_into_its_place_is_saved_with_its_copy(kernels):
    """``batch[i] = samples[i].cuda()`` launches one kernel per copy, a model several."""
    (found,) = of_kind(samples_one_by_one(kernels=kernels, kernels_at=1), "small copies")
    saved = 199 * 26 * US - 307 * US if kernels == 1 else 199 * US
    assert found.gain_ns == pytest.approx(saved, rel=0.05)


@pytest.mark.parametrize("nbytes", [99_999, 100_000])
def test_pageable_copies_of_less_than_a_megabyte_in_all_are_no_finding(nbytes):
    copies = [
        activity("memcpy", i * 2 * MS, (i * 2 + 1) * MS, 1, bytes=nbytes, copy_kind="HtoD",
                 src_kind="pageable", dst_kind="device")
        for i in range(10)
    ]  # fmt: skip
    prof = profile([line(1, 1, 0, 40 * MS)], copies, info=info(40 * MS))
    assert len(of_kind(prof, "pageable copies")) == (nbytes * 10 >= 10**6)
