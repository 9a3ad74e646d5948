"""The table of ops in the plain text of a profile."""

from epprof_nb.views.renderers.text import as_text
from epprof_nb.views.view_model import ViewModel
from tests.helpers.tiny import kernel, line, op, profile


def test_ops_of_one_name_are_told_apart():
    """A range around a function of a framework with the same name, and a line that is repeated."""
    ops = [
        op(1, "step", 0, 100),
        op(2, "step", 10, 90, 1, op_type="jit", category="framework", source="jax"),
        *(line(3 + i, 2 + i, 100 + i, 101 + i) | {"name": "launch(f)"} for i in range(2)),
        op(5, "once", 200, 300),
    ]
    work = [kernel(10 * i, 10 * i + 9, number) for i, number in enumerate((1, 2, 3, 4, 5))]
    rows = as_text(ViewModel(profile(ops, work, info={"wall_ns": 400}))).splitlines()
    names = [row.split("  ")[0] for row in rows]
    assert {"step (range)", "step (jit)", "launch(f) (line 2)", "launch(f) (line 3)", "once"} <= {
        *names
    }


def test_a_with_statement_and_its_op_are_one_row():
    statement = {"name": 'with epprof_nb.op("step"):'}
    ops = [
        line(1, 4, 0, 90) | statement,
        op(2, "step", 1, 89, parent=1),
        line(3, 5, 2, 80, parent=2),
    ]

    def names(op_id):
        text = as_text(ViewModel(profile(ops, [kernel(20, 30, op_id)], info={"wall_ns": 100})))
        return [row.split("  ")[0] for row in text.splitlines()[3:]]

    assert names(3) == ["step", "line 5"]
    # Work outside the op is in no other row.
    assert names(1) == [statement["name"]]


def test_a_page_shows_lone_surrogates_as_question_marks(tmp_path):
    info = {"wall_ns": 10, "script": "caf\udce9.py"}
    prof = profile([op(1, "op \udce9", 0, 9)], [kernel(0, 9, 1)], info=info)
    prof.to_html(tmp_path / "page.html")
    assert "op ?" in (tmp_path / "page.html").read_text("utf-8")
