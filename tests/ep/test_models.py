"""Whole models on the provider alone, against ONNX Runtime's CPU provider."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from tests.ep import models
from tests.ep.sessions import CPU, OURS


def run(name, kind, provider, **sizes):
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        models.load(name, kind), options, providers=[provider, CPU] if provider != CPU else [CPU]
    )
    used = {part.ep_name for part in session.get_provider_graph_assignment_info()}
    return used, session.run(None, models.feeds(name, kind, **sizes))


@pytest.mark.parametrize("name", models.NAMES)
@pytest.mark.parametrize("sizes", [{}, {"batch": 1, "length": 1, "past": 5}], ids=["batch", "one"])
def test_a_model_runs_without_fallback_as_on_the_cpu(provider, name, sizes):
    used, got = run(name, np.float32, provider(), **sizes)
    assert used == {OURS}
    _, expected = run(name, np.float32, CPU, **sizes)
    for value, wanted in zip(got, expected, strict=True):
        assert (value.shape, value.dtype) == (wanted.shape, wanted.dtype)
        # Sums of some hundred products in another order.
        np.testing.assert_allclose(value, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("name", models.NAMES)
def test_a_float16_model_is_as_precise_as_on_the_cpu(provider, name):
    # The CPU provider has few kernels for float16: it converts to float32 and back around most
    # nodes, so its error against the float32 model comes from rounding weights and tensors. Ours
    # rounds at the same places; twice that error leaves room for rounding to the other side.
    used, got = run(name, np.float16, provider())
    assert used == {OURS}
    _, on_cpu = run(name, np.float16, CPU)
    _, exact = run(name, np.float32, CPU)
    for value, half, wanted in zip(got, on_cpu, exact, strict=True):
        assert (value.shape, value.dtype) == (half.shape, np.float16)
        rounding = np.finfo(np.float16).eps * np.abs(wanted).max()
        allowed = 2 * np.abs(half.astype(np.float32) - wanted).max() + rounding
        assert np.abs(value.astype(np.float32) - wanted).max() <= allowed
