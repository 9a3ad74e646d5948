"""Checks with an ONNX Runtime before 1.25; run_matrix.py runs them with such a release."""

from __future__ import annotations

import numpy as np
import onnxruntime
from IPython.core.interactiveshell import InteractiveShell

import epprof_nb
from epprof_nb import _native
from epprof_nb.core.errors import CaptureError
from epprof_nb.onnxruntime import attach
from tests.ort import models


def message(call):
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    raise AssertionError("nothing was raised")


def main():
    assert onnxruntime.__version__.startswith("1.24"), onnxruntime.__file__
    # The library itself refuses, whoever registers it, and the process continues.
    _, text = message(
        lambda: onnxruntime.register_execution_provider_library(attach.NAME, _native.__file__)
    )
    assert "1.25 is the first" in text, text
    for call in (
        epprof_nb.onnxruntime.install,
        lambda: epprof_nb.onnxruntime.enable_profiling(onnxruntime.RunOptions()),
        lambda: epprof_nb.onnxruntime.session(models.chain()),
    ):
        kind, text = message(call)
        assert kind is CaptureError, kind
        assert "pip install -U onnxruntime" in text, text
    # The extension still loads; sessions run, and the profile says what is missing.
    InteractiveShell.instance().run_line_magic("load_ext", "epprof_nb")
    session = onnxruntime.InferenceSession(models.chain())
    with epprof_nb.profile() as prof:
        session.run(None, {"x": np.ones((1, 4), np.float32)})
    assert any("pip install -U onnxruntime" in note for note in prof.info["notes"]), prof.info


if __name__ == "__main__":
    main()
