"""Names of framework ops by time, which colour the timeline."""

from __future__ import annotations

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.frameworks.framework_names import rank_framework_operators
from epprof_nb.views.renderers.text import as_text
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.headers import first_view_header
from tests.helpers.tiny import kernel, line, op, profile
from tests.helpers.training import framework, training

OPS = (
    framework(1, "net", 0, 1000),
    framework(2, "net.a", 100, 400, 1),
    framework(3, "net.b", 400, 650, 1),
    framework(4, "net.a", 660, 700, 1),
    framework(5, "Adam.step", 1000, 1090, op_type="optimizer"),
    op(6, "mine", 1100, 2000),
)


def test_modules_are_named_by_their_class_and_ranked_by_their_own_time():
    found = rank_framework_operators(ProfileIndex(profile(OPS)))
    assert found.label == "module"
    assert found.names == ("Net", "A", "B", "Adam.step")
    assert found.host_ns.tolist() == [410, 340, 250, 90]
    assert found.counts.tolist() == [1, 2, 1, 1]
    assert found.ranks.tolist() == [0, 1, 2, 1, 3, -1]


def test_device_time_ranks_before_host_time():
    found = rank_framework_operators(ProfileIndex(training()))
    # Device time of a step: b 120, net 55, a 60.
    assert found.names[:4] == ("B", "A", "Net", "Adam.step")


def test_operators_rank_before_modules():
    operators = [
        op(7, "aten::linear", 110, 390, 2, op_type="operator", category="operator"),
        op(8, "aten::addmm", 120, 380, 7, op_type="operator", category="operator"),
    ]
    found = rank_framework_operators(ProfileIndex(profile([*OPS, *operators])))
    assert (found.label, found.names) == ("operator", ("aten::addmm", "aten::linear"))
    assert found.host_ns.tolist() == [260, 20]


def test_functions_have_their_names():
    ops = [
        framework(1, "step", 0, 90, op_type="jit"),
        framework(2, "jax.compile", 10, 80, 1, "compile"),
    ]
    found = rank_framework_operators(ProfileIndex(profile(ops)))
    assert (found.label, found.names) == ("function", ("jax.compile", "step"))


def test_ops_of_other_traces_have_their_names():
    ops = [op(1, "main", 0, 100, op_type="FEE"), op(2, "", 10, 20, 1), line(3, 1, 30, 90, 1)]
    found = rank_framework_operators(ProfileIndex(profile(ops)))
    assert (found.label, found.names) == ("op", ("main",))
    assert found.ranks.tolist() == [0, -1, -1]
    # Ops have their own colour if they launched device work.
    worked = ProfileIndex(profile(ops, [kernel(0, 10, 1)]))
    assert rank_framework_operators(worked).names == ()


def test_views_without_device_work_show_them():
    model = ViewModel(profile(OPS))
    assert model.colours_operators
    assert model.top_operators(2) == [("Net", 410, 1), ("A", 340, 2)]
    lines = as_text(model).splitlines()
    assert [line.split()[0] for line in lines[-5:]] == ["module", "Net", "A", "B", "Adam.step"]
    header = first_view_header(model)
    assert [entry["name"] for entry in header["operators"]] == ["Net", "A", "B", "Adam.step"]
    assert header["operator_word"] == "module"
    assert not ViewModel(training()).colours_operators
