"""Findings on hidden waits: what is read, and after which kernel, however the source reads it."""

import pytest

from tests.helpers.planted import MS, US, info, of_kind
from tests.helpers.tiny import activity, call, kernel, line, op, profile


def reading(statement, *, size=1, sync=True, read=True, prepare=3 * MS, rounds=8):
    """Each round computes for 5 ms, reads values to pageable memory, and prepares the next one."""
    ops, work, calls, now = [], [], [], 0
    for i in range(rounds):
        first = 10 * i + 1
        ops.append(line(first, 2, now, now + 100 * US))
        calls.append(call(now, now + 100 * US, correlation_id=len(calls) + 1, op_id=first))
        work.append(kernel(now + 100 * US, now + 5 * MS, first, name="compare",
                           correlation_id=len(calls), thread_id=1))  # fmt: skip
        begin, now = now + 100 * US, now + 5 * MS
        if read:
            calls.append(call(begin, now + 10 * US, name="cuMemcpyDtoHAsync_v2", op_id=first + 1,
                              correlation_id=len(calls) + 1))  # fmt: skip
            work.append(activity("memcpy", now, now + 2 * US, first + 1, copy_kind="DtoH",
                                 bytes=size, src_kind="device", dst_kind="pageable",
                                 correlation_id=len(calls), thread_id=1))  # fmt: skip
            now += 10 * US
            if sync:
                calls.append(call(now, now + 5 * US, name="cuStreamSynchronize",
                                  op_id=first + 1, correlation_id=len(calls) + 1))  # fmt: skip
                now += 5 * US
            begin = now
        ops += [
            line(first + 1, 3, min(begin, now - 1), now),
            line(first + 2, 4, now, now + prepare),
        ]
        now += prepare
    source = f"for x in data:\n    y = f(x)\n    {statement}\n    x = load()\n"
    return profile(ops, work, calls, info=info(now), sources={"In[1]": source})


@pytest.mark.parametrize(
    ("statement", "more", "text"),
    [
        ("if y[0, 0] == limit: break", {}, "to read 1 B after `compare`"),
        ("z = y[y > 0]", {"size": 8}, "to read 8 B after `compare`"),
        ("metric.update(y)", {"size": 40_000, "sync": False}, "to read 40.0 kB after"),
        ("log(f'{y}')", {"size": 4}, "to read 4 B after `compare`"),
        ("assert (y > 0).all()", {}, "to read 1 B after"),
        ("total = int(y.sum())", {"sync": False, "size": 8}, "to read 8 B after"),
    ],
)
def test_a_read_is_named_with_its_bytes_and_kernel(statement, more, text):
    (found,) = of_kind(reading(statement, **more), "wait")
    assert found.text.startswith("Line 3")
    assert text in found.text
    assert found.gain_ns == pytest.approx(8 * 3 * MS, rel=0.1)


@pytest.mark.parametrize("statement", ["z = where(y > 0, y, 0)", "total += y", "seen.append(y)"])
def test_code_that_reads_nothing_has_no_finding(statement):
    assert not of_kind(reading(statement, read=False), "wait")


def jax(wait, *, prepare=3 * MS, rounds=8, name="np.asarray(jax.Array)", source="jax"):
    """As `reading`, but another thread makes the copy, and an op of JAX shows the wait."""
    ops, work, calls, now = [], [], [], 0
    for i in range(rounds):
        first = 10 * i + 1
        calls.append(call(now, now + 100 * US, correlation_id=len(calls) + 1, op_id=first))
        work.append(kernel(now + 100 * US, now + 5 * MS, first, name="loop_add_fusion",
                           correlation_id=len(calls), thread_id=1))  # fmt: skip
        ops += [line(first, 2, now, now + 100 * US)]
        begin, now = now + 100 * US, now + (5 * MS + 20 * US if wait else 100 * US)
        ops.append(line(first + 1, 3, begin, now + US))
        if wait:
            ops.append(op(first + 2, name, begin, now, first + 1, op_type="transfer",
                          category="framework", source=source))  # fmt: skip
            calls.append(call(now - 20 * US, now - 15 * US, name="cuMemcpyDtoHAsync_v2",
                              thread_id=9, correlation_id=len(calls) + 1))  # fmt: skip
            work.append(activity("memcpy", now - 15 * US, now - 12 * US, copy_kind="DtoH", bytes=4,
                                 src_kind="device", dst_kind="pinned",
                                 correlation_id=len(calls), thread_id=9))  # fmt: skip
        ops.append(line(first + 3, 4, now + US, now + prepare))
        now += prepare
    text = "for x in data:\n    y = f(x)\n    losses.append(float(y))\n    x = load()\n"
    return profile(ops, work, calls, info=info(max(now, work[-1]["end_ns"])),
                   sources={"In[1]": text})  # fmt: skip


def test_reads_of_arrays_of_jax_are_named():
    prof = jax(wait=True)
    (found,) = of_kind(prof, "wait")
    assert found.text == (
        "Line 3 (`losses.append(float(y))`) waits for the GPU 8 times, to read 4 B after "
        "`loop_add_fusion`."
    )
    # Without the waits, the host prepares for 3 of the 5 ms that the device works.
    assert found.gain_ns == pytest.approx(8 * 3 * MS, rel=0.15)
    assert not of_kind(jax(wait=False), "wait")


def test_other_functions_of_jax_are_no_reads():
    assert not of_kind(jax(wait=True, name="device_put"), "wait")
    # No work is launched after a single wait.
    assert not of_kind(jax(wait=True, rounds=1), "wait")
    assert of_kind(jax(wait=True, rounds=2), "wait")
