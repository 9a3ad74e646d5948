"""Programs, each in its own process, that know the provider by ONNX Runtime's plugin API only."""

from __future__ import annotations

from tests.ort import programs

START = """
import sys, threading, numpy as np, onnxruntime as ort
from importlib.util import find_spec
from tests.ort import models
OURS, CPU = "EpprofExecutionProvider", "CPUExecutionProvider"
PATH = find_spec("epprof_nb").submodule_search_locations[0] + "/_native.abi3.so"
if not __import__("os").path.exists(PATH):
    PATH = find_spec("epprof_nb._native").origin
assert "epprof_nb._native" not in sys.modules
x = np.array([[-1, 0, 1, 2], [3, 4, 5, 6]], np.float32)
want = ort.InferenceSession(models.chain(), providers=[CPU]).run(None, {"x": x})[0]

def register(name=OURS):
    ort.register_execution_provider_library(name, PATH)

def ours():
    return [d for d in ort.get_ep_devices() if d.ep_name == OURS]

def options(device=None, **given):
    made = ort.SessionOptions()
    made.add_provider_for_devices([device or ours()[0]], given)
    return made

def check(session):
    assert session.get_providers() == [OURS, CPU], session.get_providers()
    np.testing.assert_allclose(session.run(None, {"x": x})[0], want, rtol=1e-6)
    return session

def refused(create, *parts):
    try:
        create()
    except Exception as error:
        assert all(part in str(error) for part in parts), error
    else:
        raise AssertionError("nothing was raised")
"""


def run(code):
    """Run code in a process of its own, in which nothing is registered."""
    return programs.run(START + code)
