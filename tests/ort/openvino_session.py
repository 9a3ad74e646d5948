"""Checks with Intel's plugin provider; run_matrix.py runs them with its newest release."""

from __future__ import annotations

import numpy as np
import onnxruntime
import onnxruntime_ep_openvino

import epprof_nb
from tests.ort import models
from tests.ort.rows import nodes

NAME = "OpenVINOExecutionProvider"


def devices():
    """The devices of this machine that the provider supports: none if the CPU is not Intel's."""
    return [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]


def made():
    """Two sessions from the same options."""
    options = onnxruntime.SessionOptions()
    options.add_provider_for_devices(devices()[:1], {})
    return [onnxruntime.InferenceSession(models.chain(), options) for _ in range(2)]


def main():
    x = np.ones((2, 4), np.float32)
    onnxruntime.register_execution_provider_library(
        NAME, onnxruntime_ep_openvino.get_library_path()
    )
    if not devices():
        print("skipped: the provider supports no device of this machine")
        return
    plain = [(s.get_providers(), s.get_provider_options(), s.run(None, {"x": x})) for s in made()]
    epprof_nb.onnxruntime.install(nodes="every")
    for session, (providers, options, expected) in zip(made(), plain, strict=True):
        assert session.get_providers() == providers, session.get_providers()
        assert session.get_provider_options() == options, session.get_provider_options()
        with epprof_nb.profile() as prof:
            results = [session.run(None, {"x": x}) for _ in range(3)]
        for result in results:
            np.testing.assert_array_equal(result[0], expected[0])
        # It fuses the graph: one node per run.
        assert len(nodes(prof)) == 3, nodes(prof)
        assert set(nodes(prof)["provider"]) == {NAME}, nodes(prof)
        assert nodes(prof)["run_id"].tolist() == [0, 1, 2], nodes(prof)


if __name__ == "__main__":
    main()
