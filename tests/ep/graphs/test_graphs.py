"""Sessions that capture graphs: the contract with ONNX Runtime, and right answers."""

from __future__ import annotations

import gc
import os
import resource
import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from epprof_nb import _native
from epprof_nb.core.errors import KernelError
from epprof_nb.ep.graphs import session_graphs
from tests.ep.sessions import CPU, model, on_cpu, run_options
from tests.ort import models

pytestmark = pytest.mark.filterwarnings("error::UserWarning")


def expected(x):
    return on_cpu(models.chain()).run(None, {"x": x})[0]


class TestRuns:
    def test_every_run_is_right_with_changing_inputs(self, new_session, x):
        made = new_session()
        for times in range(6):
            (result,) = made.run(None, {"x": x * times})
            np.testing.assert_allclose(result, expected(x * times), rtol=1e-6)

    @pytest.mark.parametrize("warm_ups", [1, 2, 7])
    def test_the_first_run_warms_up_and_captures(self, new_session, x, computes, warm_ups):
        made = new_session(min_num_runs_before_cuda_graph_capture=warm_ups)
        made.run(None, {"x": x})
        assert len(computes) == warm_ups + 1
        captured = computes[-1]
        made.run(None, {"x": x + 1})
        made.run(None, {"x": x + 2})
        assert computes[warm_ups + 1 :] == [captured] * 2 * computes.calls_per_replay

    def test_results_are_not_overwritten_by_the_next_run(self, new_session, x):
        made = new_session()
        results = [made.run(None, {"x": x * times})[0] for times in range(4)]
        for times, result in enumerate(results):
            np.testing.assert_allclose(result, expected(x * times), rtol=1e-6)

    def test_shapes_have_graphs_of_their_own(self, new_session):
        made = new_session()
        for rows in [2, 3, 2, 5, 3, 2]:
            x = np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32)
            np.testing.assert_allclose(made.run(None, {"x": x})[0], expected(x), rtol=1e-5)

    def test_values_in_host_memory_are_those_of_the_capture(self, ep):
        nodes = [
            helper.make_node("Abs", ["x"], ["a"]),
            helper.make_node("Shape", ["a"], ["shape"]),
            helper.make_node("Expand", ["one", "shape"], ["ones"]),
            helper.make_node("Add", ["a", "ones"], ["y"]),
        ]
        feeds = {"x": np.ones((1, 1), np.float32), "one": np.ones((1, 1), np.float32)}
        serialized = model(nodes, feeds, {"y": np.float32})
        made = ep.session(serialized, device="host", enable_cuda_graph=True)
        for rows in [2, 5, 2, 3, 5, 2]:  # the shape of another run takes the memory
            x = np.full((rows, 3), rows, np.float32)
            np.testing.assert_array_equal(made.run(None, feeds | {"x": x})[0], x + 1)

    def test_many_shapes_keep_the_graphs_that_were_used_last(self, new_session):
        made = new_session()
        for rows in [*range(1, 30), 3]:
            x = np.full((rows, 4), rows, np.float32)
            np.testing.assert_allclose(made.run(None, {"x": x})[0], expected(x), rtol=1e-5)
        kept = [slot.buffers.inputs["x"].shape()[0] for slot in slots_of(made)]
        assert kept == [*range(23, 30), 3]

    def test_ort_values_in_either_memory(self, new_session, device, x):
        made = new_session()
        for memory in ["cpu", "gpu" if device == "host" else "cuda"] * 3:
            value = onnxruntime.OrtValue.ortvalue_from_numpy(x * 2, memory, 0)
            (result,) = made.run_with_ort_values(None, {"x": value})
            np.testing.assert_allclose(result.numpy(), expected(x * 2), rtol=1e-6)
            x = x + 1

    def test_run_async_calls_back_with_each_result(self, new_session, x):
        made = new_session()
        done, results = threading.Event(), {}

        def callback(values, times, failed):
            results[times] = failed or values[0]
            if len(results) == 5:
                done.set()

        for times in range(5):
            made.run_async(None, {"x": x * times}, callback, times)
        assert done.wait(120)
        for times, result in results.items():
            np.testing.assert_allclose(result, expected(x * times), rtol=1e-6)

    def test_run_async_calls_back_with_an_error(self, new_session, x):
        made = new_session()
        done, failures = threading.Event(), []

        def callback(values, _, failed):
            failures.append((values, failed))
            done.set()

        made.run_async(None, {"x": x.astype(np.float64)}, callback, None)
        assert done.wait(120)
        assert failures[0][0] == []
        assert "float" in failures[0][1]

    def test_what_python_did_not_bind_runs_eagerly(self, new_session, x, computes):
        made = new_session()
        made.run(None, {"x": x})
        for times in range(4):
            before = len(computes)
            (result,) = made._sess.run([made.get_outputs()[0].name], {"x": x * times}, None)
            np.testing.assert_allclose(result, expected(x * times), rtol=1e-6)
            assert len(computes) == before + 1

    def test_a_wrong_shape_or_name_is_an_error_after_the_capture_too(self, new_session, x):
        made = new_session()
        for _ in range(2):
            made.run(None, {"x": x})
            with pytest.raises(Exception, match=r"(?i)invalid|dimension|rank"):
                made.run(None, {"x": x[0]})
            with pytest.raises(ValueError, match="missing"):
                made.run(None, {"y": x})

    def test_a_stock_session_captures_too(self, ep, device, x, computes):
        name, options = ep.provider(device, enable_cuda_graph=True)
        assert options["enable_cuda_graph"] == "1"
        made = onnxruntime.InferenceSession(models.chain(), providers=[(name, options), CPU])
        for times in range(4):
            np.testing.assert_allclose(
                made.run(None, {"x": x * times})[0], expected(x * times), rtol=1e-6
            )
        assert len(computes) == 3 + 3 * computes.calls_per_replay
        assert len(set(computes[2:])) == 1

    def test_empty_and_scalar_tensors(self, new_session):
        node = helper.make_node("Abs", ["x"], ["y"], name="node")
        for shape in [(), (0,), (3, 0, 2), (5,)]:
            value = np.full(shape, -2, np.float32)
            serialized = model([node], {"x": value}, {"y": np.float32})
            made = new_session(serialized)
            for _ in range(3):
                np.testing.assert_array_equal(made.run(None, {"x": value})[0], np.abs(value))

    def test_intermediate_memory_is_not_reused_by_others(self, new_session, x):
        """Memory allocated by a capture stays with the graph: no other session overwrites it."""
        made, other = new_session(), new_session(enable_cuda_graph=False)
        made.run(None, {"x": x})
        for times in range(20):
            other.run(None, {"x": np.full((2, 4), 1e3, np.float32)})
            np.testing.assert_allclose(
                made.run(None, {"x": x * times})[0], expected(x * times), rtol=1e-6
            )

    def test_shapes_may_be_computed_on_the_cpu(self, new_session):
        nodes = [
            helper.make_node("Shape", ["x"], ["shape"], name="shape"),
            helper.make_node("Gather", ["shape", "one"], ["columns"], name="gather"),
            helper.make_node("Concat", ["minus", "columns"], ["target"], name="concat", axis=0),
            helper.make_node("Abs", ["x"], ["positive"], name="abs"),
            helper.make_node("Reshape", ["positive", "target"], ["y"], name="reshape"),
        ]
        feeds = {"x": np.ones((2, 3, 4), np.float32)}
        serialized = with_constants(
            model(nodes, feeds, {"y": np.float32}),
            one=np.array([2], np.int64), minus=np.array([-1], np.int64),
        )  # fmt: skip
        made = new_session(serialized)
        for times in range(1, 5):
            value = np.full((2, 3, 4), -times, np.float32)
            np.testing.assert_array_equal(
                made.run(None, {"x": value})[0], np.full((6, 4), times, np.float32)
            )


class TestIds:
    def test_a_graph_for_each_id(self, new_session, x, computes):
        made = new_session()
        for number in [0, 2, 0, 2]:
            (result,) = made.run(None, {"x": x + number}, run_options(number))
            np.testing.assert_allclose(result, expected(x + number), rtol=1e-6)
        assert len(computes) == 3 + 3 + 2 * computes.calls_per_replay
        assert computes[2] != computes[5]

    def test_minus_one_runs_eagerly(self, new_session, x, computes):
        made = new_session()
        for times in range(1, 4):
            made.run(None, {"x": x}, run_options(-1))
            assert len(computes) == times

    @pytest.mark.parametrize("text", ["two", "", "-2", "1.5", str(2**31), " 1 ", "1_0", "\u0661"])
    def test_an_id_that_is_no_number_is_refused_with_the_key(self, new_session, x, text):
        made = new_session()
        with pytest.raises(KernelError, match="gpu_graph_id"):
            made.run(None, {"x": x}, run_options(text))

    def test_an_id_is_read_without_an_error_inside(self, new_session, monkeypatch):
        """ONNX Runtime's getter raises one if there is no id, which takes as long as a replay."""
        new_session()
        called = []
        monkeypatch.setattr(onnxruntime.RunOptions, "get_run_config_entry", called.append)
        assert (
            session_graphs.graph_id(None) == session_graphs.graph_id(onnxruntime.RunOptions()) == 0
        )
        assert [session_graphs.graph_id(run_options(n)) for n in (0, -1, 3)] == [0, -1, 3]
        assert not called

    def test_a_released_graph_is_captured_again(self, new_session, x, computes):
        made = new_session()
        for number in (0, 2):
            made.run(None, {"x": x}, run_options(number))
        computes.clear()
        made.release_captured_graph(2)
        made.run(None, {"x": x})
        assert len(computes) == computes.calls_per_replay
        np.testing.assert_allclose(
            made.run(None, {"x": x + 1}, run_options(2))[0], expected(x + 1), rtol=1e-6
        )
        assert len(computes) == computes.calls_per_replay + 3

    def test_releasing_what_is_not_captured_warns(self, new_session, x):
        made = new_session()
        with pytest.warns(UserWarning, match="no graph 7 to release.*no run") as caught:
            made.release_captured_graph(7)
        assert caught[0].filename == __file__
        for number in (0, 2):
            made.run(None, {"x": x}, run_options(number))
        with pytest.warns(UserWarning, match="no graph 99 .* ids 0, 2"):
            made.release_captured_graph(99)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_allclose(made.run(None, {"x": x})[0], expected(x), rtol=1e-6)
            made.release_captured_graph(2)


class TestLifetime:
    def test_a_graph_ends_with_its_session(self, new_session, x):
        made = new_session()
        made.run(None, {"x": x})
        (slot,) = slots_of(made)
        ended = weakref.ref(slot)
        del slot, made
        gc.collect()
        assert ended() is None

    def test_a_graph_ends_with_its_thread(self, new_session, x):
        made = new_session()
        ended = []

        def capture():
            made.run(None, {"x": x})
            ended.extend(weakref.ref(slot) for slot in slots_of(made))

        thread = threading.Thread(target=capture)
        thread.start()
        thread.join()
        gc.collect()
        assert len(ended) == 1
        assert ended[0]() is None
        made.release_captured_graph(0)
        np.testing.assert_allclose(made.run(None, {"x": x})[0], expected(x), rtol=1e-6)

    def test_threads_warm_up_capture_and_replay_at_once(self, new_session, x):
        made = new_session()

        def work(number):
            for times in range(30):
                value = x * number + times
                options = run_options(times % 2)
                np.testing.assert_allclose(
                    made.run(None, {"x": value}, options)[0], expected(value), rtol=1e-6
                )
            return number

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, range(4))) == [0, 1, 2, 3]

    def test_releasing_while_other_threads_replay(self, new_session, x):
        made = new_session()
        made.run(None, {"x": x})
        stop = threading.Event()
        want = expected(x)

        def work():
            while not stop.is_set():
                np.testing.assert_allclose(made.run(None, {"x": x})[0], want, rtol=1e-6)

        with ThreadPoolExecutor(3) as pool:
            workers = [pool.submit(work) for _ in range(3)]
            try:
                for _ in range(50):
                    made.release_captured_graph(0)
                    made.run(None, {"x": x})
            finally:
                stop.set()
            for worker in workers:
                worker.result()

    def test_released_graphs_leave_no_memory_behind(self, new_session, device):
        x = np.ones((256, 4), np.float32)
        made = new_session()

        def memory_after(times):
            for _ in range(times):
                made.run(None, {"x": np.broadcast_to(x, (64, 256, 4)).reshape(-1, 4)})
                made.release_captured_graph(0)
            if device == "host":
                return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            # Not what the arena has reserved: that doubles when a stream is late to release memory.
            return _native.ep_device_statistics(0)["in_use"] // 1024

        before = memory_after(20)  # a graph holds three intermediate results of 256 kB
        assert memory_after(100) - before < 100 * 256

    def test_a_forked_child_replays(self, ep, x):
        made = ep.session(models.chain(), enable_cuda_graph=True)
        made.run(None, {"x": x})
        made.run(None, {"x": x})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if not child:
            right = np.allclose(made.run(None, {"x": x + 1})[0], expected(x + 1))
            os._exit(0 if right else 1)
        assert os.waitpid(child, 0)[1] == 0
        np.testing.assert_allclose(made.run(None, {"x": x})[0], expected(x), rtol=1e-6)


def slots_of(session):
    """The graphs of a session on this thread."""
    return list(session._epprof_graphs._threads.slots.by_key.values())


def with_constants(serialized, **values):
    """The model with initializers."""
    import onnx
    from onnx import numpy_helper

    loaded = onnx.load_from_string(serialized)
    loaded.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in values.items()
    )
    return loaded.SerializeToString()
