"""Every column of every table is described: in the registry, the docstrings and the docs."""

import importlib.util

import pytest

from epprof_nb import compare
from epprof_nb.data.result_columns import TABLES
from epprof_nb.data.schema import TABLES as SCHEMAS
from epprof_nb.jobs.job import Job
from epprof_nb.profiles import Profile
from tests.helpers.tiny import call, kernel, line, op, profile
from tests.paths import ROOT

METHODS = [name for name in dir(Profile) if name.startswith("by_")]
ANALYSES = ("insights", "overlap", "launches", "transfers", "waits", "steadiness", "sensitivity")
OF_MEMORY = ("by_op", "by_line", "by_module")
FRAMES = {
    **{schema.name: lambda p, name=schema.name: getattr(p, name) for schema in SCHEMAS},
    **{name: lambda p, name=name: getattr(p, name)() for name in METHODS},
    **{name: lambda p, name=name: getattr(p, name)() for name in ANALYSES},
    **{name: lambda p, name=name: getattr(p, name)() for name in ("memory_at", "memory_pools")},
    **{f"{n}_memory": lambda p, name=n: getattr(p, name)(memory=True) for n in OF_MEMORY},
    "gaps": lambda p: p.gaps(0),
    "joined": lambda p: p.joined(),
    **{
        name: lambda p, memory=memory: p.by_op(
            args=["layer"] if p.ops["args"].notna().any() else (), memory=memory
        )
        for name, memory in {"by_op": False, "by_op_memory": True}.items()
    },
    "by_operator": lambda p: p.by_operator(modules=True, shapes=True),
    "by_kernel_short_name": lambda p: p.by_kernel(by="short_name"),
    "by_line_self": lambda p: p.by_line(inclusive=False),
    "critical_path": lambda p: p.critical_path(),
    "critical_path_op": lambda p: p.critical_path(by="op"),
    "critical_path_line": lambda p: p.critical_path(by="line"),
    "what_if": lambda prof: prof.what_if({"waits": 0}),
    "roofline": lambda p: p.roofline(measure=False),
    "compare_ops": lambda p: compare(p, p).ops,
    "compare_kernels": lambda p: compare(p, p).kernels,
    "compare_lines": lambda p: compare(p, p).lines,
    "compare_memory": lambda p: compare(p, p).memory,
    "compare_by_stack": lambda p: compare(p, p).by_stack(),
    "job_ranks": lambda p: Job({0: p}).ranks,
    "job_by_rank": lambda p: Job({0: p}).by_rank(),
    "job_by_op": lambda p: Job({0: p}).by_op(),
    "job_by_task": lambda p: Job({0: p}).by_task(),
    "job_by_device": lambda p: Job({0: p}).by_device(),
    "job_insights": lambda p: Job({0: p}).insights(),
    "job_collectives": lambda p: Job({0: p}).collectives(),
    "job_stragglers": lambda p: Job({0: p}).stragglers(),
}


def filled():
    """A profile with a row in every table of the breakdowns."""
    return profile(
        ops=[
            op(1, "In[1]", 0, 100, op_type="cell", category="cell"),
            line(2, 1, 0, 90, 1, category="cell", repeat=0),
            op(3, "layer", 5, 80, 2, args={"layer": 3}, category="user", repeat=0),
            op(4, "run", 5, 70, 3, op_type="run", category="session", session=1, run_id=0),
            op(5, "node", 6, 60, 4, op_type="Relu", category="node", session=1, node_index=2),
        ],
        activities=[kernel(20, 30, 5, correlation_id=1, grid_x=1, grid_y=1, grid_z=1)],
        api_calls=[call(10, 12, correlation_id=1)],
        info={
            "wall_ns": 100,
            "repeats": [[0, 95]],
            "recording": {"detail": "memory"},
            "experiment": {},
        },
        sources={"In[1]": "x"},
    )


def test_every_table_is_described():
    assert set(FRAMES) == set(TABLES)


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("make", [filled, profile])
def test_the_columns_are_those_described(name, make):
    frame = FRAMES[name](make())
    if frame.index.name is not None:
        frame = frame.reset_index()
    described = {c.name: c.dtype for c in TABLES[name].columns}
    found = {column: str(dtype) for column, dtype in frame.dtypes.items()}
    if make is profile:
        described.pop("arg_<name>", None)
    elif "arg_<name>" in described:
        described = {k.replace("<name>", "layer"): v for k, v in described.items()}
        described["arg_layer"] = "Int64"
    assert list(found) == list(described)
    assert found == described


def test_every_column_has_a_meaning_and_its_unit():
    for table in TABLES.values():
        for column in table.columns:
            assert column.meaning
            if column.name.endswith("_ns"):
                assert column.unit == "ns"
            if column.name.endswith("bytes"):
                assert column.unit == "bytes"
            if column.dtype == "float64":
                assert column.unit


def test_one_name_has_one_unit():
    units = {}
    for table in TABLES.values():
        for column in table.columns:
            assert units.setdefault(column.name, column.unit) == column.unit, column.name


@pytest.mark.parametrize("name", [n for n in TABLES if hasattr(Profile, n)])
def test_docstrings_describe_the_columns(name):
    member = getattr(Profile, name)
    text = (member.fget if isinstance(member, property) else member).__doc__
    assert "{columns}" not in text
    for column in TABLES[name].columns:
        assert any(row.split()[:2] == [column.name, *column.dtype.split()][:2]
                   for row in text.splitlines()), column.name  # fmt: skip


def test_the_docs_are_up_to_date():
    path = ROOT / "tests" / "tools" / "make_table_docs.py"
    spec = importlib.util.spec_from_file_location("make_table_docs", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.OUTPUT.read_text("utf-8") == tool.markdown(), f"run python {path.relative_to(ROOT)}"
