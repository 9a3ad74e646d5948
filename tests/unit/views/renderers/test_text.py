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
