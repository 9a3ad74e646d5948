"""Sessions that cannot capture graphs, and options that enable them."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from epprof_nb.core.errors import KernelError
from tests.ep.sessions import CPU, OURS, on_cpu
from tests.ort import models

pytestmark = pytest.mark.filterwarnings("error::UserWarning")


class TestOptions:
    @pytest.mark.parametrize("number", [0, -1, 8, 100, "many"])
    def test_warm_ups_out_of_range_are_refused_with_the_bound(self, ep, device, number):
        with pytest.raises(KernelError, match="1 to 7"):
            ep.provider(
                device, enable_cuda_graph=True, min_num_runs_before_cuda_graph_capture=number
            )

    def test_a_switch_that_is_none_is_refused(self, ep, device):
        name, options = ep.provider(device, enable_cuda_graph=True)
        with pytest.raises(KernelError, match="neither 0 nor 1"):
            onnxruntime.InferenceSession(
                models.chain(), providers=[(name, {**options, "enable_cuda_graph": "maybe"}), CPU]
            )

    def test_without_the_option_nothing_is_captured(self, new_session, x, computes):
        made = new_session(enable_cuda_graph=False)
        made.run(None, {"x": x})
        assert len(computes) == 1

    def test_a_node_without_a_kernel_is_named(self, new_session):
        with pytest.raises(KernelError, match=r"second \(MatMul\)"):
            new_session(only=["Relu", "Sigmoid"])

    def test_all_nodes_are_ours(self, new_session):
        assert new_session().get_providers() == [OURS, CPU]

    def test_a_session_on_pool_threads_says_that_it_runs_eagerly(self, new_session, x):
        options = onnxruntime.SessionOptions()
        options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
        options.inter_op_num_threads = 2
        with pytest.warns(UserWarning, match="ORT_PARALLEL"):
            made = new_session(sess_options=options)
        for times in range(4):
            (result,) = made.run(None, {"x": x * times})
            np.testing.assert_allclose(
                result, on_cpu(models.chain()).run(None, {"x": x * times})[0], rtol=1e-6
            )

    @pytest.mark.parametrize("model", [models.branching, models.looping])
    def test_a_session_with_control_flow_says_that_it_runs_eagerly(self, new_session, model):
        with pytest.warns(UserWarning, match="If, Loop or Scan"):
            made = new_session(model())
        other = on_cpu(model())
        kinds = {"tensor(bool)": bool, "tensor(int64)": np.int64, "tensor(float)": np.float32}
        feeds = {
            i.name: np.ones([d if isinstance(d, int) else 3 for d in i.shape], kinds[i.type])
            for i in made.get_inputs()
        }
        for times in (1, 0, 1, 1):
            given = {n: np.array(v * times, v.dtype) for n, v in feeds.items()}
            for got, wanted in zip(made.run(None, given), other.run(None, given), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_a_graph_with_nodes_left_out_says_why(ep):
    with pytest.raises(KernelError, match=r"\. Leave only= or nodes= out, or leave enable_cuda"):
        ep.session(models.chain(), only=["Relu"], enable_cuda_graph=True)
