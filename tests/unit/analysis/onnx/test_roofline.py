"""The roofline: costs by hand, peaks that are measured, and how much is covered."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epprof_nb
from epprof_nb import host
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.rules.device_work.far_from_peak import far_from_roof
from epprof_nb.analysis.onnx.flops_and_bytes import op_cost, parse_shapes
from epprof_nb.analysis.peaks.measure_peaks import measure
from epprof_nb.analysis.peaks.peaks_in_info import Peaks, peaks_of
from tests.helpers.tiny import call, kernel, op, profile

COSTS = [
    # op_type, inputs, outputs, FLOPs, least bytes
    ("MatMul", "float[8,256], float[256,64]", "float[8,64]", 2 * 8 * 256 * 64,
     4 * (8 * 256 + 256 * 64 + 8 * 64)),
    ("MatMul", "float16[2,3,4], float16[4,5]", "float16[2,3,5]", 2 * 30 * 4, 2 * (24 + 20 + 30)),
    ("Gemm", "float[4,8], float[16,4], float[16]", "float[8,16]", 2 * 8 * 16 * 4 + 8 * 16,
     4 * (32 + 64 + 16 + 128)),
    ("Conv", "float[1,4,8,8], float[6,2,3,3], float[6]", "float[1,6,8,8]",
     6 * 64 * (2 * 2 * 9 + 1), 4 * (256 + 108 + 6 + 384)),
    ("ConvTranspose", "float[1,4,8,8], float[4,2,3,3]", "float[1,2,17,17]", 2 * 256 * 18,
     4 * (256 + 72 + 578)),
    # Four heads of 16: products of 10 queries with 12 keys, and with 12 values.
    ("MultiHeadAttention", "float[2,10,64], float[2,12,64], float[2,12,64]", "float[2,10,64]",
     2 * 2 * (2 * 4 * 10 * 12 * 16), 4 * (1280 + 1536 + 1536 + 1280)),
    ("Attention", "float[2,4,10,16], float[2,4,12,16], float[2,4,12,16]", "float[2,4,10,16]",
     2 * 2 * (2 * 4 * 10 * 12 * 16), 4 * (1280 + 1536 + 1536 + 1280)),
    ("Attention", "float[2,10,64], float[64,192], float[192]", "float[2,10,64]",
     2 * 2 * 10 * 64 * 192 + 2 * 2 * (2 * 10 * 10 * 64), 4 * (1280 + 12288 + 192 + 1280)),
    ("Softmax", "float[4,8]", "float[4,8]", 5 * 32, 4 * 64),
    ("LayerNormalization", "float[4,8], float[8], float[8]", "float[4,8]", 7 * 32, 4 * 80),
    ("ReduceMean", "double[4,8]", "double[4]", 32, 8 * 36),
    ("Add", "float[4,8], float[8]", "float[4,8]", 32, 4 * (32 + 8 + 32)),
    ("Transpose", "int64[4,8]", "int64[8,4]", 0, 8 * 64),
    ("Gather", "float[1000,8], int64[3]", "float[3,8]", 0, 4 * 24 + 8 * 3 + 4 * 24),
]  # fmt: skip


@pytest.mark.parametrize(("op_type", "inputs", "outputs", "flops", "least"), COSTS)
def test_costs_are_those_computed_by_hand(op_type, inputs, outputs, flops, least):
    cost = op_cost(op_type, parse_shapes(inputs), parse_shapes(outputs))
    assert (cost.flops, cost.least_bytes) == (flops, least)
    assert cost.dtype == inputs.split("[")[0]


def test_a_convolution_does_what_its_loops_do():
    image, weights = np.ones((1, 2, 5, 5)), np.ones((3, 2, 3, 3))
    products = 0
    for _ in range(weights.shape[0]):
        for y in range(image.shape[2] - 2):
            for x in range(image.shape[3] - 2):
                products += image[0, :, y : y + 3, x : x + 3].size
    cost = op_cost(
        "Conv", parse_shapes("double[1,2,5,5], double[3,2,3,3]"), parse_shapes("double[1,3,3,3]")
    )
    assert cost.flops == 2 * products


@pytest.mark.parametrize(
    ("op_type", "inputs", "outputs"),
    [
        ("TopK", "float[4]", "float[2]"),
        ("MatMul", "", "float[2]"),
        ("MatMul", "float[], float[2]", "float[2]"),
        ("Gemm", "float[2,2], float[2,2]", "float[2]"),
        ("Gemm", "float[2,2], float[2,2]", "float[0,2]"),
        ("Conv", "float[1,2,3]", "float[1]"),
    ],
)
def test_the_cost_of_what_no_formula_fits_is_unknown(op_type, inputs, outputs):
    assert op_cost(op_type, parse_shapes(inputs), parse_shapes(outputs)) is None


@given(st.text('float[]0123456789, {"}', max_size=40) | st.text(max_size=20))
def test_any_text_is_parsed_or_refused(text):
    tensors = parse_shapes(text)
    if tensors is not None:
        assert ", ".join(f"{t.dtype}[{','.join(map(str, t.shape))}]" for t in tensors) or not text


def test_shapes_of_strings_and_giants_are_refused():
    assert parse_shapes("string[2]") is None
    assert parse_shapes("float[99999999,99999999,99999999]") is None
    assert parse_shapes(None) == []


PEAKS = {"0": {"flops_per_s": {"float": 1e12}, "bytes_per_s": 1e11}}


def model():
    """A MatMul that ran twice, a Relu, a captured MatMul of three replays, and other work."""
    shapes = {"input_shapes": "float[100,1000], float[1000,100]", "output_shapes": "float[100,100]"}
    node = {"op_type": "MatMul", **shapes}
    relu = {"input_shapes": "float[100,1000]", "output_shapes": "float[100,1000]"}
    graph = {"graph_id": 1, "graph_node_id": 7, "capture_op_id": 4}
    return profile(
        ops=[
            op(1, "mm", 0, 10, **node), op(2, "mm", 20, 30, **node),
            op(3, "relu", 40, 50, op_type="Relu", **relu),
            op(4, "captured", 60, 70, **node), op(5, "replay", 80, 90),
        ],
        activities=[
            kernel(1_000, 41_000, 1, correlation_id=1),
            kernel(50_000, 90_000, 2, correlation_id=2),
            kernel(100_000, 116_000, 3, correlation_id=3),
            *(kernel(200_000 * i, 200_000 * i + 20_000, 5, correlation_id=i, **graph)
              for i in (4, 5, 6)),
            kernel(2_000_000, 2_004_000, 5, correlation_id=7),
        ],
        api_calls=[call(0, 1, correlation_id=i) for i in range(1, 8)],
        info={"peaks": PEAKS},
    )  # fmt: skip


def test_rows_have_the_time_the_work_and_the_least_time():
    frame = model().roofline().set_index("name")
    assert frame.index.tolist() == ["mm", "captured", "relu", "(not covered)"]
    assert frame["count"].tolist() == [2, 3, 1, 0]
    assert frame["device_ns"].tolist() == [80_000, 60_000, 16_000, 4_000]
    flops, least = 2 * 100 * 100 * 1000, 4 * (200_000 + 10_000)
    assert frame.loc["mm", "flops"] == 2 * flops
    assert frame.loc["captured", "least_bytes"] == 3 * least
    # 20 us of arithmetic, 8.4 us of memory.
    assert frame.loc["mm", "bound"] == "compute"
    assert frame.loc["mm", "least_ns"] == pytest.approx(40_000)
    assert frame.loc["captured", "roof_share"] == pytest.approx(1.0)
    assert frame.loc["relu", "bound"] == "memory"
    assert frame.loc["relu", "roof_share"] == pytest.approx(0.5)
    assert frame["share"].sum() == pytest.approx(1)
    assert frame.loc["(not covered)", ["flops", "least_ns"]].isna().all()


def test_without_peaks_there_is_no_roof():
    prof = model()
    del prof.info["peaks"]
    frame = prof.roofline()  # a device of another machine
    assert frame["flops"].iloc[0] > 0
    assert frame["least_ns"].isna().all()
    assert frame["bound"].isna().all()
    assert "peaks" not in prof.info


@pytest.mark.parametrize(
    "entry", [None, 3, {"0": None}, {"0": {}}, {"x": PEAKS["0"]}, {"0": {"flops_per_s": 1}},
              {"0": {"flops_per_s": {"float": "a"}, "bytes_per_s": 1}},
              {"0": {"flops_per_s": {}, "bytes_per_s": 0}}],
)  # fmt: skip
def test_damaged_peaks_are_none(entry):
    assert peaks_of({"peaks": entry}) == {}


def test_peaks_are_measured_by_type():
    dtypes = {"float": np.float32, "double": np.float64}
    found = measure(np, lambda: None, size=128, copied=2**20, dtypes=dtypes)
    assert found.flops_per_s.keys() == {"float", "double"}
    assert min(*found.flops_per_s.values(), found.bytes_per_s) > 1e6
    assert found.flops_of("float16") == found.flops_per_s["float"]
    assert Peaks({}, 1.0).flops_of("float") is None
    assert found.link_bytes_per_s == {}


def test_the_link_is_measured_in_both_directions():
    host, copied = np.ones(2**12, np.float32), []

    def copy(target, source):
        copied.append((target is host, source is host))
        np.copyto(target, source)

    dtypes = {"float": np.float32}
    found = measure(np, lambda: None, size=16, copied=2**16, dtypes=dtypes, pinned=(host, copy))
    assert set(copied) == {(False, True), (True, False)}
    assert found.link_bytes_per_s.keys() == {"HtoD", "DtoH"}
    assert peaks_of({"peaks": {"0": found.to_info()}}) == {0: found}


def test_the_host_device_is_measured_on_request_and_saved(tmp_path):
    with epprof_nb.profile() as prof:
        host.launch(lambda: None)
        host.synchronize()
    assert "peaks" not in prof.info
    prof.roofline(measure=False)
    assert "peaks" not in prof.info
    prof.roofline()
    (peaks,) = peaks_of(prof.info).values()
    prof.save(tmp_path / "p.epprof")
    loaded = epprof_nb.load(tmp_path / "p.epprof")
    assert peaks_of(loaded.info) == {host.device.HOST_DEVICE_ID: peaks}


def test_nodes_of_a_session_on_the_host_device_are_covered():
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    tensor, kind = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    weights = onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
         onnx.helper.make_node("Relu", ["h"], ["y"], name="relu")],
        "graph", [tensor("x", kind, ["n", 64])], [tensor("y", kind, None)], [weights],
    )  # fmt: skip
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    made.ir_version = 8
    epprof_nb.onnxruntime.install()
    try:
        session = epprof_nb.ep.session(made.SerializeToString(), device="host")
        with epprof_nb.profile(ort_nodes="every") as prof:
            for _ in range(3):
                session.run(None, {"x": np.ones((8, 64), np.float32)})
    finally:
        epprof_nb.onnxruntime.uninstall()
    prof.info["peaks"] = {str(host.device.HOST_DEVICE_ID): PEAKS["0"]}  # measuring takes seconds
    frame = prof.roofline().set_index("name")
    assert frame.loc["product", "flops"] == 3 * 2 * 8 * 64 * 64
    assert frame.loc["product", "count"] == frame.loc["relu", "count"] == 3
    assert (frame.loc[["product", "relu"], "roof_share"] > 0).all()
    assert frame["device_ns"].sum() == prof.activities["duration_ns"].sum()
    assert not pd.isna(frame.loc["relu", "bound"])


def test_operators_far_from_the_roof_are_found():
    prof = model()
    prof.info["peaks"] = {"0": {"flops_per_s": {"float": 2.5e12}, "bytes_per_s": 4e11}}
    (found,) = far_from_roof(ProfileIndex(prof))
    # The least time is that of the arithmetic, 8 us for each of five executions.
    assert found.text.startswith("`MatMul` nodes (2 nodes) take 140 µs, 29 % of what the arith")
    assert found.gain_ns == int(140_000 - 40_000 / 0.7)
    assert found.high_ns == 100_000
    assert found.evidence_rows(prof).tolist() == [0, 1, 3, 4, 5]
    assert "roofline" in set(prof.insights()["kind"])


def test_operators_near_the_roof_and_profiles_without_peaks_have_no_finding():
    prof = model()
    prof.info["peaks"] = {"0": {"flops_per_s": {"float": 5e11}, "bytes_per_s": 5e10}}
    assert not list(far_from_roof(ProfileIndex(prof)))
    del prof.info["peaks"]
    assert not list(far_from_roof(ProfileIndex(prof)))
