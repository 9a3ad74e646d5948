"""Profiles of ONNX Runtime without device work: nodes are coloured by their operators."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.frameworks.operator_colour_order import rank_operators
from epprof_nb.files.readers.read_trace import read_trace
from epprof_nb.util import palette
from epprof_nb.views.queries.icicle import icicle
from epprof_nb.views.queries.window import WindowQuery, query_window
from epprof_nb.views.renderers.html import notebook_html
from epprof_nb.views.renderers.png import as_png
from epprof_nb.views.renderers.text import as_text
from epprof_nb.views.timeline.op_colours import COLOURS, operator_hues
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.headers import first_view_header
from tests.helpers.tiny import kernel, line, op, profile
from tests.paths import DATA


def node(op_id, op_type, start, end, parent=1, **more):
    return op(op_id, f"{op_type}_{op_id}", start, end, parent, op_type=op_type, category="node",
              session=1, node_index=op_id, **more)  # fmt: skip


def run(*nodes, activities=()):
    ops = [op(1, "model_run", 0, 1000, category="session", op_type="run", session=1), *nodes]
    info = {"wall_ns": 1000, "onnxruntime_sessions": {"1": "m"}}
    return profile(ops, activities, info=info)


CHAIN = (
    node(2, "Conv", 0, 300), node(3, "Relu", 300, 350), node(4, "Conv", 400, 700),
    node(5, "Gemm", 700, 900),
)  # fmt: skip


def test_operators_are_ranked_by_the_host_time_of_their_nodes():
    found = rank_operators(ProfileIndex(run(*CHAIN)))
    assert found.names == ("Conv", "Gemm", "Relu")
    assert found.ranks.tolist() == [-1, 0, 2, 0, 1]


def test_device_time_ranks_before_host_time():
    found = rank_operators(ProfileIndex(run(*CHAIN, activities=[kernel(0, 10, 3)])))
    assert found.names == ("Relu", "Conv", "Gemm")


def test_a_loop_is_ranked_below_the_nodes_inside():
    inside = [node(3, "Add", 10, 200, parent=2), node(4, "Mul", 200, 220, parent=2)]
    found = rank_operators(ProfileIndex(run(node(2, "Loop", 0, 900), *inside)))
    assert found.names == ("Add", "Mul", "Loop")


def test_nodes_that_were_not_recorded_do_not_count():
    learned = node(6, "Gemm", 0, 900, status="learned")
    assert rank_operators(ProfileIndex(run(*CHAIN, learned))).names[0] == "Conv"


def test_statements_are_no_operators():
    model = ViewModel(profile([line(1, 1, 0, 10)]))
    assert model.operators.names == ()
    assert first_view_header(model)["operators"] == []
    assert "op.operator" not in query_window(model, WindowQuery(0, 10))[1]
    assert not model.colours_operators


@pytest.mark.parametrize("details", [False, True])
def test_the_viewer_has_the_hue_of_each_node(details):
    many = [node(i + 2, f"Op{i}", 100 * i, 100 * i + 90 - i) for i in range(10)]
    model = ViewModel(run(*many))
    _, columns = query_window(model, WindowQuery(0, 1000), details=details)
    hues = operator_hues([f"Op{i}" for i in range(10)])
    assert sorted(columns["op.operator"].tolist()) == sorted([-1, *hues])
    assert first_view_header(model)["operators"] == [
        {"name": f"Op{i}", "number": hues[i]} for i in range(8)
    ]


def test_a_name_has_the_same_hue_in_two_profiles():
    # The hue depends on the other names only if one of them has it, and not on the times.
    one = run(*CHAIN)
    other = run(node(2, "Softmax", 0, 500), node(3, "Gemm", 500, 550), node(4, "Conv", 600, 610))

    def hues(prof):
        model = ViewModel(prof)
        _, columns = query_window(model, WindowQuery(0, 1000), details=False)
        of_rows = dict(
            zip(columns["op.row"].tolist(), columns["op.operator"].tolist(), strict=True)
        )
        types = prof.tables["ops"].names("op_type").to_list()
        of_tree = icicle(model)
        tree = zip(map(of_tree["names"].__getitem__, of_tree["name"]), of_tree["hue"], strict=True)
        by_name = {name.partition("_")[0]: hue for name, hue in tree if hue >= 0}
        assert by_name == {types[row]: hue for row, hue in of_rows.items() if hue >= 0}
        return by_name

    first, second = hues(one), hues(other)
    assert first["Conv"] == second["Conv"] != first["Gemm"] == second["Gemm"]
    assert first.keys() == {"Conv", "Relu", "Gemm"}


def test_names_with_one_preferred_hue_have_different_hues_in_a_profile():
    alone = {name: operator_hues([name])[0] for name in ("forward", "backward", "Conv")}
    assert alone["forward"] == alone["backward"] != alone["Conv"]
    forward, backward, conv = operator_hues(["forward", "backward", "Conv"])
    assert (forward, conv) == (alone["forward"], alone["Conv"])
    assert backward not in (forward, conv)
    ranges = [
        op(1, "backward", 0, 30, op_type="operator", category="operator"),
        op(2, "forward", 30, 50, op_type="operator", category="operator"),
    ]
    shown = first_view_header(ViewModel(profile(ranges)))["operators"]
    assert len({entry["number"] for entry in shown}) == 2


@pytest.mark.parametrize("count", [0, 1, 12, 13, 40])
def test_as_many_names_as_there_are_hues_have_different_ones(count):
    names = [f"phase {i}" for i in range(count)]
    hues = operator_hues(names)
    leading = hues[: len(palette.OPERATORS)]
    assert len(hues) == count
    assert len(set(leading)) == len(leading)
    assert set(hues) <= set(range(len(palette.OPERATORS)))


def test_common_names_have_different_preferred_hues():
    for names in (
        "MatMul Gemm Conv Relu Softmax LayerNormalization Add Mul Transpose",
        "Linear Conv2d LayerNorm ReLU GELU Embedding MultiheadAttention BatchNorm2d Dropout",
        "aten::mm aten::addmm aten::bmm aten::add_ aten::copy_ aten::mul aten::sum",
    ):
        hues = {operator_hues([name])[0] for name in names.split()}
        assert len(hues) == len(names.split())


@pytest.mark.parametrize(
    ("trace", "word"),
    [("kineto_cpu_torch_2.13.0", "operator"), ("jax_cpu_0.10.2", "op"), ("viztracer_1.1.1", "op")],
)
def test_traces_of_host_work_have_colours(trace, word):
    path = DATA / "traces" / f"{trace}.json.gz"
    model = ViewModel(read_trace(path))
    header = first_view_header(model)
    assert (header["operator_word"], model.colours_operators) == (word, True)
    _, columns = query_window(model, WindowQuery(*model.time_range), details=True)
    coloured = columns["op.operator"] >= 0
    assert coloured.mean() > 0.9
    tree = icicle(model)
    hue_of = {entry["name"]: entry["number"] for entry in header["operators"]}
    for name, hue in zip(map(tree["names"].__getitem__, tree["name"]), tree["hue"], strict=True):
        assert hue == hue_of.get(name, hue)
    assert sum(hue >= 0 for hue in tree["hue"]) > 0.5 * len(tree["hue"])
    png = as_png(model)
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))[..., :3]
    largest = palette.OPERATORS[header["operators"][0]["number"]]
    assert (pixels == rgb(largest)).all(axis=2).any()


def test_names_with_characters_that_utf_8_lacks_have_a_hue():
    assert 0 <= operator_hues(["\ud800"])[0] < len(palette.OPERATORS)


def rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


@pytest.mark.parametrize("on_device", [False, True])
def test_the_picture_has_the_colours_of_operators_and_their_bars(on_device):
    activities = [kernel(0, 900, 2)] if on_device else []
    png = as_png(ViewModel(run(*CHAIN, activities=activities)))
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))[..., :3]
    found = {tuple(colour) for colour in pixels.reshape(-1, 3).tolist()}
    hues = operator_hues(["Conv", "Gemm", "Relu"])
    for hue in hues:
        is_drawn = rgb(COLOURS[len(palette.OPS) + hue]) in found
        assert is_drawn == (not on_device)
    colours = [palette.OPERATORS[hue] for hue in hues]
    bars = [int((pixels[:, 200] == rgb(colour)).all(axis=1).sum()) for colour in colours]
    assert (min(bars) > 0) == (not on_device)


def test_tables_without_scripts_have_the_operators():
    model = ViewModel(run(*CHAIN))
    text = as_text(model)
    assert "operator" in text
    assert [line.split()[0] for line in text.splitlines()[-3:]] == ["Conv", "Gemm", "Relu"]
    assert "600 ns" in text
    assert "<td>Conv</td><td>600 ns</td><td>71 %</td><td>2</td>" in notebook_html(model, b"")
    assert "operator" not in as_text(ViewModel(run(*CHAIN, activities=[kernel(0, 10, 3)])))


def test_the_figure_has_a_legend_of_operators():
    many = [node(i + 2, f"$Op{i}$", 100 * i, 100 * i + 90 - i) for i in range(10)]
    ax = Figure(figsize=(6, 4)).subplots()
    run(*many).plot.timeline(ax)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [f"$Op{i}$" for i in range(8)]
