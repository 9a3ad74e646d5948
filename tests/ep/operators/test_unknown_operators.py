"""Models with operators that ONNX Runtime does not know, or knows in another form."""

from __future__ import annotations

import onnxruntime
import pytest

from epprof_nb.core.errors import KernelError
from tests.ep.sessions import OURS, model_of

DOMAIN = "com.example"
LATER = "com.example.later"


def notes_of(error):
    return "\n".join(getattr(error, "__notes__", []))


def define(ep, op_type, **options):
    ep.kernel(op_type, domain=DOMAIN, **options)(lambda ctx, x, y=None: None)


@pytest.mark.parametrize(
    ("op_type", "domain", "note"),
    [
        ("Twice", DOMAIN, "@epprof_nb.ep.kernel('Twice', domain='com.example') before"),
        ("Twice", DOMAIN, "Operators with a kernel in this domain: Half."),
        ("Half", "com.exmaple", "in domain 'com.example', but the node has domain 'com.exmaple'"),
        ("Half", "", "in domain 'com.example', but the node has no domain"),
        ("Twice", "", "in a domain of its own: @epprof_nb.ep.kernel('Twice', domain=...)"),
        ("Gelu", "", "Gelu exists since opset 20."),
    ],
)
def test_an_unknown_operator_has_a_note_on_how_to_define_it(ep, x, op_type, domain, note):
    define(ep, "Half")
    with pytest.raises(Exception, match=op_type) as caught:
        ep.session(model_of(op_type, {"x": x}, domain=domain))
    assert note in notes_of(caught.value)


def test_a_kernel_that_came_after_the_device_is_in_the_note(ep, x):
    ep.provider("host")
    given = onnxruntime.SessionOptions()
    devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == OURS]
    given.add_provider_for_devices(devices[:1], {})
    for op_type, note in (("Twice", "No kernel declares"), ("Half", "Create new ones")):
        ep.kernel("Half", domain=LATER)(lambda ctx, x: None)
        with pytest.raises(Exception, match=op_type) as caught:
            onnxruntime.InferenceSession(model_of(op_type, {"x": x}, domain=LATER), given)
        assert note in notes_of(caught.value)


@pytest.mark.parametrize("names", [["x"], ["x", "a", "b"]], ids=["types", "number of inputs"])
def test_an_operator_that_its_kernel_declares_otherwise_says_how(ep, x, names):
    define(ep, "Half", types="int32")
    with pytest.raises(Exception, match="Half") as caught:
        ep.session(model_of("Half", dict.fromkeys(names, x), domain=DOMAIN))
    assert "declares the inputs T, T (optional) and the outputs T; T is int32" in notes_of(
        caught.value
    )


def test_verify_says_so_in_its_message(ep, x):
    with pytest.raises(KernelError, match="No kernel declares the operator Twice"):
        ep.verify(model_of("Twice", {"x": x}, domain=DOMAIN), {"x": x})


@pytest.mark.parametrize("given", [{"providers": ["CPUExecutionProvider"]}, {}])
def test_other_sessions_and_errors_have_no_note(ep, x, given):
    ep.provider("host")
    with pytest.raises(Exception, match="Twice") as caught:
        onnxruntime.InferenceSession(model_of("Twice", {"x": x}, domain=DOMAIN), **given)
    assert notes_of(caught.value) == ""
    with pytest.raises(Exception, match="onnx") as caught:
        ep.session("no_such_model.onnx")
    assert notes_of(caught.value) == ""
