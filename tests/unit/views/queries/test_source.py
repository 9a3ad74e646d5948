"""The source view: totals of lines, syntax highlighting and functions in files."""

import importlib.util
import json
import linecache
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import epprof_nb
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.breakdowns.line_totals import function_totals, line_totals
from epprof_nb.data.schema import MISSING
from epprof_nb.recording.ranges import range_sources
from epprof_nb.testing import synthetic_profile
from epprof_nb.views.queries.source import source_listing
from epprof_nb.views.queries.syntax_highlighting import syntax_spans
from epprof_nb.views.view_model import ViewModel
from tests.helpers.tiny import activity, kernel, line, op, profile
from tests.helpers.training import framework, training

MODULE = """import epprof_nb


@epprof_nb.op("attention")
def attention(x):
    def inner():
        return x

    return inner()


def other():
    pass


@epprof_nb.op("mlp")
@staticmethod
def mlp(x):
    return x
"""


def test_totals_of_lines_are_those_of_their_own_work():
    made = profile(
        ops=[
            op(1, "In[1]", 0, 1000, op_type="cell"),
            line(2, 1, 0, 900, 1),
            line(3, 2, 10, 110, 2),
            op(4, "f", 20, 80, 3),
            line(5, 2, 210, 310, 2, count=4),
            line(6, 7, 910, 950, 1, cell="In[2]"),
        ],
        activities=[
            kernel(30, 60, 4, name="a"),
            kernel(240, 280, 5, name="b"),
            kernel(280, 285, 5, name="a"),
            activity("memcpy", 300, 310, 5, bytes=1024),
            activity("memset", 320, 325, 2, bytes=64),
            activity("synchronization", 0, 900, 2),
            kernel(400, 407),
        ],
        sources={"In[1]": "for x in y:\n    f(x)\n", "In[2]": "z"},
    )
    first, second, third = ViewModel(made).line_totals
    assert (first.line, first.device_ns, first.kernels, first.host_ns) == (1, 5, 0, 900)
    assert (second.line, second.device_ns, second.kernels) == (2, 85, 3)
    assert (second.copies, second.bytes, second.count, second.host_ns) == (1, 1024, 5, 200)
    assert (second.start_ns, second.end_ns) == (10, 310)
    assert second.top == [("b", 1, 40), ("a", 2, 35), ("memcpy", 1, 10)]
    assert (third.cell, third.line, third.device_ns, third.top) == ("In[2]", 7, 0, [])


def test_host_time_of_a_one_line_loop_counts_once():
    made = profile(
        ops=[line(1, 1, 0, 313, 0), line(2, 1, 5, 310, 1, count=3), op(3, "f", 10, 300, 2)],
        sources={"In[1]": "for x in y: f(x)\n"},
    )
    (only,) = ViewModel(made).line_totals
    assert (only.host_ns, only.count) == (313, 4)
    assert only.host_ns == made.by_line()["host_ns"].iloc[0]


def test_sources_have_the_device_time_of_the_whole_profile():
    made = profile(
        ops=[line(1, 1, 0, 100, 0), op(2, "worker", 0, 900, 0)],
        activities=[kernel(10, 15, 1), kernel(20, 815, 2)],
        sources={"In[1]": "f()\n"},
    )
    (cell,) = source_listing(ViewModel(made))
    assert cell["device_ns"] == 800
    assert [t["device_ns"] for t in cell["totals"]] == [5]


def test_totals_of_lines_add_up_to_the_work_of_the_cell():
    made = synthetic_profile(activities=3000)
    lines = ViewModel(made).line_totals
    frame = made.by_line(inclusive=False)
    assert sum(t.device_ns for t in lines) == frame["self_device_ns"].iloc[:-1].sum()
    busiest = max(lines, key=lambda t: t.device_ns)
    assert busiest.device_ns == frame["self_device_ns"].max()
    activities = made.activities
    of_line = made.ops.index[made.ops["line"] == busiest.line]
    own = activities[activities["op_id"].isin(of_line)]
    for name, count, spent in busiest.top:
        rows = own[own["short_name"] == name]
        assert (len(rows), rows["duration_ns"].sum()) == (count, spent)


def spans(text):
    lines = text.split("\n")
    return [
        [(kind, line[start:end]) for start, end, kind in found]
        for line, found in zip(lines, syntax_spans(lines), strict=True)
    ]


def test_keywords_strings_and_comments_are_marked():
    assert spans('for x in f("a"):  # note') == [
        [("k", "for"), ("k", "in"), ("s", '"a"'), ("c", "# note")]
    ]
    assert spans('x = """a\nb"""') == [[("s", '"""a')], [("s", 'b"""')]]
    assert spans("f'{x!r} y'")[0][0][0] == "s"


def test_what_is_not_python_stays_plain_and_breaks_nothing():
    assert spans("%%timeit\nx = 1")[0] == []
    assert spans("x = (1,\n  if") == [[], [("k", "if")]]
    assert spans('"unterminated') is not None
    assert syntax_spans([]) == []


def test_columns_count_as_javascript_does():
    (found,) = syntax_spans(["x = '😀' if y else z"])
    assert found[0] == (4, 8, "s")
    assert found[1] == (9, 11, "k")


def test_source_begins_and_ends_where_the_text_does():
    made = profile([line(1, 2, 0, 5)], sources={"In[1]": "a\fb\nc\n"})
    (cell,) = source_listing(ViewModel(made))
    assert (cell["first"], cell["lines"]) == (1, ["a\fb", "c"])
    assert [t["line"] for t in cell["totals"]] == [2]
    assert json.loads(json.dumps(cell))["file"] is False


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "a_model.py"
    path.write_text(MODULE)
    spec = importlib.util.spec_from_file_location("a_model", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def run(module):
    with epprof_nb.profile() as prof:
        module.attention(1)
        module.mlp(2)
        module.attention(3)
    return prof


def test_functions_of_ops_are_shown_with_their_file(module):
    prof = run(module)
    file = module.__file__
    assert prof.info["op_places"] == {
        "attention": {"file": file, "line": 4},
        "mlp": {"file": file, "line": 16},
    }
    first, second = source_listing(ViewModel(prof))
    assert (first["cell"], first["file"], first["first"]) == (file, True, 4)
    assert first["lines"] == MODULE.split("\n")[3:9]
    assert [(t["line"], t["count"]) for t in first["totals"]] == [(4, 2)]
    assert second["lines"][-1] == "    return x"
    assert "other" not in json.dumps([first, second])


def test_a_file_that_is_gone_or_changed_is_not_shown(module):
    from pathlib import Path

    Path(module.__file__).write_text("x = 1\n")
    assert "op_places" not in run(module).info
    Path(module.__file__).unlink()
    assert run(module).sources == {}


def test_lines_that_have_moved_since_the_import_are_not_shown(module, monkeypatch):
    from pathlib import Path

    path = Path(module.__file__)
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    imported = importlib.import_module("a_model")
    try:
        assert "op_places" in run(imported).info
        # Three functions of the old text begin where the new one has others.
        path.write_text(MODULE.replace("def other", "def more():\n    pass\n\n\ndef other"))
        found = run(imported)
    finally:
        del sys.modules["a_model"]
    assert "op_places" not in found.info
    assert found.sources == {}


def test_files_are_not_read_when_a_profile_is_shown(tmp_path):
    secret = tmp_path / "secret.py"
    secret.write_text("password = 'x'\n")
    made = profile([op(1, "f", 0, 5)], info={"op_places": {"f": {"file": str(secret), "line": 1}}})
    assert source_listing(ViewModel(made)) == []


@pytest.mark.parametrize(
    "places", ["text", {"f": 3}, {"f": {"file": 1, "line": "x"}}, {"f": {}}, {"g": None}]
)
def test_places_that_make_no_sense_are_passed_over(places):
    made = profile([op(1, "f", 0, 5)], info={"op_places": places}, sources={"x.py": "\n\na"})
    assert ViewModel(made).function_totals == []
    source_listing(ViewModel(made))


def test_the_modules_of_a_class_share_the_line_of_its_method():
    places = {"A": {"file": "net.py", "line": 3}, "Net": {"file": "net.py", "line": 9}}
    made = training(class_places=places)
    made.sources["net.py"] = "\n\ndef forward(self): a\n\n\n\n\n\ndef forward(self): net\n"
    a, net = ViewModel(made).function_totals
    assert (a.line, a.count, a.device_ns, a.ops) == (3, 2, 120, ["net.a"])
    # Modules of classes without a place count for the one that calls them.
    assert (net.line, net.count, net.device_ns, net.ops) == (9, 2, 550 - 120, ["net"])
    shown = [part for part in source_listing(ViewModel(made)) if part["file"]]
    assert [part["first"] for part in shown] == [3, 9]
    assert shown[0]["totals"][0]["ops"] == ["net.a"]


def test_a_class_of_another_cell_is_shown_under_the_name_of_the_cell(monkeypatch):
    file = "/tmp/not-a-file/7.py"
    source = "class Net:\n    def forward(self):\n        pass\n\n    x = 1\n"
    lines = source.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, file, (len(source), None, lines, file))
    scope = {}
    exec(compile(source, file, "exec"), scope)
    range_sources.register_class("NetOfACell", scope["Net"].forward)
    ops = profile([framework(1, "net", 0, 9, args={"class": "NetOfACell"})]).tables["ops"]
    shell = SimpleNamespace(compile=SimpleNamespace(format_code_name={file: ("Cell", "In[7]")}.get))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    found = range_sources.sources_of(ops)
    assert found.class_places == {"NetOfACell": {"file": "In[7]", "line": 2}}
    assert found.texts["In[7]"].split("\n") == ["", "    def forward(self):", "        pass"]
    # The profiled cell is shown as a whole anyway.
    assert range_sources.sources_of(ops, ["In[7]"]) == ({}, {}, {})


def test_redacting_the_source_leaves_no_text_of_a_function(module):
    shared = run(module).redacted(["source", "paths"])
    text = json.dumps([shared.sources, shared.info["op_places"], source_listing(ViewModel(shared))])
    assert "inner" not in text
    assert "a_model" not in text


def test_decorating_what_has_no_code_is_fine():
    range_sources.register("built in", len)
    range_sources.register("class method", classmethod(run))
    ops = profile([op(1, "built in", 0, 1)]).tables["ops"]
    assert range_sources.sources_of(ops) == ({}, {}, {})


def test_totals_do_not_depend_on_the_order_of_the_ops():
    made = synthetic_profile(activities=500)
    shuffled = made.tables["ops"].take(np.random.default_rng(0).permutation(len(made.ops)))
    other = epprof_nb.profiles.Profile({**made.tables, "ops": shuffled}, made.info, made.sources)
    assert ViewModel(other).line_totals == ViewModel(made).line_totals


def hlo(op_id, start, end, parent, file=None, number=None, **more):
    args = {"hlo_op": f"add.{op_id}"} | ({"file": file, "line": number} if file else {})
    return op(op_id, "add", start, end, parent, op_type="hlo", category="framework", source="xla",
              args=args, **more)  # fmt: skip


def test_lines_of_a_compiled_function_have_the_work_of_their_instructions():
    cell = "def f(x):\n    y = x + 1\n\n    return y * 2\nf(1)\n"
    prof = profile(
        [
            line(1, 5, 0, 100), hlo(2, 0, 10, 1, "In[1]", 2), hlo(3, 10, 20, 1, "In[1]", 4),
            hlo(4, 20, 30, 1, "In[1]", 3), hlo(5, 30, 40, 1), hlo(6, 40, 50, 1, "other.py", 1),
            hlo(7, -90, -80, MISSING, "In[1]", 4, status="earlier"),
        ],
        [
            kernel(10, 12, 2), kernel(20, 23, 3), kernel(30, 35, 4), kernel(40, 47, 5),
            kernel(50, 61, 6), kernel(70, 83, 5, capture_op_id=7, graph_id=1),
        ],
        sources={"In[1]": cell}, info={"wall_ns": 100},
    )  # fmt: skip
    totals = {t.line: t for t in line_totals(ProfileIndex(prof))}
    # Line 3 is empty, other.py has no text, and one instruction has no line.
    assert {number: t.device_ns for number, t in totals.items()} == {2: 2, 4: 3 + 13, 5: 5 + 7 + 11}
    assert {number: t.count for number, t in totals.items()} == {2: 0, 4: 0, 5: 1}
    assert (totals[4].start_ns, totals[4].end_ns, totals[4].host_ns) == (10, 20, 10)


def test_a_line_that_only_an_earlier_profile_ran_has_the_time_range_of_the_profile():
    prof = profile(
        [line(1, 2, 0, 90), hlo(2, -90, -80, MISSING, "In[1]", 1, status="earlier")],
        [kernel(70, 83, 1, capture_op_id=2, graph_id=1)],
        sources={"In[1]": "def f(x): return x\nf(1)\n"}, info={"wall_ns": 100},
    )  # fmt: skip
    first, second = line_totals(ProfileIndex(prof))
    assert (first.line, first.device_ns, first.start_ns, first.end_ns) == (1, 13, 0, 100)
    assert (first.host_ns, second.line, second.device_ns) == (0, 2, 0)


def test_files_have_the_lines_of_compiled_functions():
    place = {"file": "model.py", "line": 1}
    prof = profile(
        [
            line(1, 1, 0, 100), op(2, "f", 0, 90, 1, op_type="jit", category="framework"),
            hlo(3, 10, 20, 2, "model.py", 2), hlo(4, 20, 30, 2, "model.py", 9),
        ],
        [kernel(10, 12, 3), kernel(20, 23, 4)],
        sources={"In[1]": "f(1)\n", "model.py": "def f(x):\n    return x + 1\n"},
        info={"op_places": {"f": place}, "wall_ns": 100},
    )  # fmt: skip
    index = ProfileIndex(prof)
    assert [(t.cell, t.line, t.device_ns) for t in line_totals(index)] == [("In[1]", 1, 5)]
    assert [(t.cell, t.line, t.device_ns, t.ops) for t in function_totals(index)] == [
        ("model.py", 1, 3, ["f"]), ("model.py", 2, 2, []),
    ]  # fmt: skip
