"""Launches in functions of earlier cells and of files have the user's line."""

from __future__ import annotations

import sys
from pathlib import Path

SOURCE = "from epprof_nb import host\ndef forward(x):\n    host.launch(lambda a: a.fill(1), x)\n"
TRAIN = "def train(n):\n    for _ in range(n):\n        model_of_the_test.forward(x)\n"


def test_a_launch_knows_its_line_in_other_cells_and_files(run, shell, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "model_of_the_test.py"
    file.write_text(SOURCE)
    try:
        run("import model_of_the_test\nfrom epprof_nb import host\nx = host.empty((8,))")
        run(TRAIN)
        run("%%gpuprofile prof\ntrain(\n    3)\nhost.synchronize()")
    finally:
        sys.modules.pop("model_of_the_test", None)
    prof = shell.user_ns["prof"]
    kernels = prof.joined().query("kind == 'kernel'")
    places = kernels[["cell", "line", "function", "caller_cell", "caller_line"]]
    assert places.drop_duplicates().to_numpy().tolist() == [
        [str(file), 3, "forward", "In[3]", 2],
    ]
    assert len(kernels) == 3
    assert prof.sources["In[2]"] == TRAIN.rstrip("\n")
    tree = prof.by_stack()
    # A worker of pytest-xdist is a program of `python -c`.
    of_the_test = tree["cell"].astype(str).str.startswith((str(Path(__file__).parent), "<string>"))
    frames = tree[(tree["level"] == "frame") & ~of_the_test]
    places = zip(frames["name"], frames["cell"], frames["line"], strict=True)
    assert set(places) == {
        ("<module>", "In[3]", 2), ("<module>", "In[3]", 4), ("train", "In[2]", 3),
        ("forward", str(file), 3),
    }  # fmt: skip
    assert not tree["level"].eq("library").any()
    assert "IPython" not in " ".join(prof.stacks["file"])


def test_where_a_statement_and_a_stack_both_exist_the_line_is_in_the_statement(run, shell):
    run("from contextlib import nullcontext\nfrom epprof_nb import host\nx = host.empty((8,))")
    run(
        "%%gpuprofile prof --repeat 2\n"
        "for i in range(3):\n"
        "    host.launch(\n        lambda a: a.fill(1),\n        x)\n"
        "    if i: host.launch(lambda a: a.fill(2), x); host.synchronize()\n"
        "s = host.Stream()\n"
        "with nullcontext():\n"
        "    [host.launch(lambda a: a.fill(3), x, stream=s) for _ in range(2)]\n"
        "def f():\n    return host.launch(lambda a: a.fill(4), x)\n"
        "f()\n"
        "host.synchronize()\n"
    )
    prof = shell.user_ns["prof"]
    activities = prof.activities.query("attribution == 'stack'")
    ops, stacks = prof.ops, prof.stacks
    checked = 0
    for row in activities.itertuples():
        op = row.op_id
        while ops["line"].isna()[op]:
            op = ops["parent_op_id"][op]
        frame = stacks.loc[row.stack_id]
        if frame["file"] == ops["cell"][op]:
            assert ops["line"][op] <= frame["line"] <= ops["end_line"][op]
            checked += 1
    assert checked > 10


def test_a_function_that_was_defined_again_has_the_text_that_it_had(run, shell):
    run("from epprof_nb import host\ndef f():\n    host.launch(int)  # first\nold = f")
    run("def f():\n    host.launch(int)  # second")
    run(
        "%%gpuprofile prof\nf()\nold()\n"
        "def f():\n    host.launch(int)  # third\n"
        "f()\nhost.synchronize()"
    )
    lines = shell.user_ns["prof"].by_line().query("function == 'f'")
    assert sorted(zip(lines["cell"], lines["line"], lines["source"], strict=True)) == [
        ("In[1]", 3, "host.launch(int)  # first"),
        ("In[2]", 2, "host.launch(int)  # second"),
        ("In[3]", 5, "host.launch(int)  # third"),
    ]
