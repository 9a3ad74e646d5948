"""Options of ONNX Runtime's CUDA provider for the memory of a device."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from epprof_nb import _native
from tests.ep.sessions import OURS, model

MEGABYTE = 1 << 20


@pytest.fixture
def create(ep, fake_cuda):
    """Create a session with options; the settings of the device are the default ones afterwards."""
    node = helper.make_node("Neg", ["x"], ["y"])
    serialized = model([node], {"x": np.ones(1, np.float32)}, {"y": np.float32})
    _, given = ep.provider("cuda:0")
    yield lambda **options: onnxruntime.InferenceSession(
        serialized, providers=[(OURS, {**given, **options})]
    )
    _native.ep_device_configure(0, 0, 0)


def reserved():
    return _native.ep_device_statistics(0)["reserved"]


def run(made, megabytes):
    x = np.ones(megabytes * MEGABYTE // 4, np.float32)
    np.testing.assert_array_equal(made.run(None, {"x": x})[0], -x)


@pytest.mark.parametrize("name", ["gpu_mem_limit", "arena.max_mem", "ep.cuda.gpu_mem_limit"])
def test_a_limit_of_memory_is_kept_and_named_by_the_error(create, name):
    limit = reserved() + 8 * MEGABYTE
    made, beyond = create(**{name: str(limit)}), limit // MEGABYTE + 1
    with pytest.raises(Exception, match=rf"no memory left .*gpu_mem_limit={limit}\)"):
        run(made, beyond)
    assert reserved() <= limit
    run(made, 1)  # the session can be used again
    create()
    with pytest.raises(Exception, match="no memory left"):
        run(made, beyond)


def test_the_session_that_was_created_last_decides(create):
    made = create(gpu_mem_limit=str(reserved() + 8 * MEGABYTE))
    create(gpu_mem_limit=str(2**64 - 1))
    run(made, reserved() // MEGABYTE + 16)


def test_the_last_region_before_the_limit_is_as_large_as_what_is_left(create):
    made = create(gpu_mem_limit=str(reserved() + 9 * MEGABYTE))
    run(made, 3)
    run(made, 4)


def test_regions_are_no_larger_than_the_request(create):
    made = create(arena_extend_strategy="kSameAsRequested")
    for megabytes in (8, 16, 24):
        before = reserved()
        run(made, megabytes)
        assert reserved() - before <= 2 * megabytes * MEGABYTE
