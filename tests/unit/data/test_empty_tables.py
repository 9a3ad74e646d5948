"""Tables without rows say why, and are DataFrames like others."""

import itertools
import pickle

import pandas as pd
import pytest

from epprof_nb import compare, load
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.result_columns import TABLES
from epprof_nb.files.epprof.reading_writing import save
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile
from epprof_nb.views.view import View
from tests.helpers.tiny import activity, kernel, op, profile
from tests.unit.data.result_columns.test_result_columns import FRAMES

CPU = {"no_gpu": {"is_first": False}, "detail": "default", "wall_ns": 100}


def on_cpu(**info):
    return profile([op(1, "prepare", 0, 90)], info=CPU | info)


def note(frame):
    """The note, which must be part of the output."""
    text = frame.attrs["note"]
    assert repr(frame).endswith(f"\nNote: {text}")
    assert "NotedFrame" not in repr(frame)
    assert "<p>Note: " in frame._repr_html_()
    return text


@pytest.mark.parametrize("name", [name for name in FRAMES if not name.startswith("compare")])
def test_every_empty_table_has_a_note_and_no_other(name):
    make = FRAMES[name] if name != "by_op" else lambda prof: prof.by_op()
    for prof in (Profile(), on_cpu(), synthetic_profile(300)):
        frame = make(prof)
        if not len(frame):
            assert len(note(frame)) > 20
        elif "note" in frame.attrs:
            # The only row has the work outside of all nodes or modules.
            assert name in ("by_node", "by_op_type", "by_module", "by_operator", "roofline")
            assert len(frame) == 1


@pytest.mark.parametrize(
    "kept",
    [
        *itertools.combinations(("ops", "activities", "api_calls"), 1),
        *itertools.combinations(("ops", "activities", "api_calls"), 2),
        (),
    ],
)
def test_everything_can_be_shown_of_a_file_with_some_empty_tables(kept, tmp_path):
    whole = synthetic_profile(100)
    tables = {
        name: table if name in kept else table.take(slice(0))
        for name, table in whole.tables.items()
    }
    save(ProfileData(tables, whole.info, whole.sources), tmp_path / "some.epprof")
    prof = load(tmp_path / "some.epprof")
    for name, make in FRAMES.items():
        assert "<table" in make(prof)._repr_html_(), name
    for tab in ("timeline", "breakdown", "source"):
        assert View(prof, tab)._repr_mimebundle_()["text/plain"]
        assert len(View(prof, tab).to_frame().columns)
    assert prof.summary()
    assert compare(prof, whole).to_markdown()
    for write, suffix in ((prof.to_chrome, "json"), (prof.to_perfetto, "pftrace"),
                          (prof.to_html, "html"), (prof.to_collapsed, "txt"),
                          (prof.to_speedscope, "speedscope.json")):  # fmt: skip
        write(tmp_path / f"some.{suffix}")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: p.by_kernel(), "the host device was not used. No GPU was found"),
        (lambda p: p.by_stream(), "No GPU was found"),
        (lambda p: p.activities, "No GPU was found"),
        (lambda p: p.transfers(), "No GPU was found"),
        (lambda p: p.gaps(), "No GPU was found"),
        (lambda p: p.waits(), "No GPU was found"),
        (lambda p: p.by_node(), "No node of an ONNX Runtime session was recorded"),
        (lambda p: p.by_run(), "`epprof_nb.onnxruntime.install()`"),
        (lambda p: p.by_module(), "No module of PyTorch was called"),
        (lambda p: p.by_step(), "No training step"),
        (lambda p: p.by_phase(), "No language model with a KV cache"),
        (lambda p: p.by_repeat(), "--repeat N"),
        (lambda p: p.graphs, "No CUDA graph was launched."),
        (lambda p: p.memory, "--detail memory"),
        (lambda p: p.overhead, "--detail overhead"),
        (lambda p: p.insights(), "2 % of the wall time"),
        (lambda p: Profile().by_op(), "Nothing was recorded"),
    ],
)
def test_the_note_names_the_reason(make, says):
    assert says in note(make(on_cpu()))


def test_the_note_depends_on_what_was_recorded():
    assert "No memory was allocated" in note(on_cpu(detail="api,memory").memory)
    assert "No memory was allocated" in note(on_cpu(detail="all").memory)
    copies = profile(activities=[activity("memcpy", 0, 9, bytes=5)])
    assert note(copies.by_kernel()) == "There was device work, but no kernel."
    kernels = profile(activities=[kernel(0, 9)])
    assert note(kernels.transfers()) == "There was device work, but no copy."
    assert "gaps(min_ns=0)" in note(kernels.gaps())
    on_gpu = profile([op(1, "prepare", 0, 90)])
    assert note(on_gpu.by_kernel()).endswith("no kernel, copy or memset was launched.")


def test_device_work_outside_of_all_nodes_and_modules_keeps_its_row():
    prof = profile(activities=[kernel(0, 9)])
    for frame in (prof.by_node(), prof.by_op_type(), prof.by_module()):
        assert frame["device_ns"].tolist() == [9]
        note(frame)
    named = profile(activities=[kernel(0, 9, name="(anonymous namespace)::k")])
    assert "note" not in named.by_kernel().attrs


def test_noted_frames_are_frames_like_others():
    empty, full = profile().by_kernel(), profile(activities=[kernel(0, 9)]).by_kernel()
    assert isinstance(empty, pd.DataFrame)
    assert list(empty) == [column.name for column in TABLES["by_kernel"].columns]
    plain = pd.DataFrame(empty)
    assert empty.equals(plain)
    assert plain.equals(empty)
    pd.testing.assert_frame_equal(empty, plain)
    assert empty.dtypes.equals(full.dtypes) or (empty.dtypes != full.dtypes).sum() <= 2
    assert type(pd.concat([empty, full])) is pd.DataFrame
    assert len(pd.concat([full, empty])) == 1
    assert type(empty[["name", "device_ns"]]) is pd.DataFrame
    assert (empty["device_ns"] == 0).tolist() == []


def test_the_html_of_frames_can_be_switched_off():
    with pd.option_context("display.notebook_repr_html", False):
        assert Profile().by_kernel()._repr_html_() is None


def test_a_pickled_table_is_a_dataframe_with_the_note():
    table = synthetic_profile(activities=100).graphs
    copy = pickle.loads(pickle.dumps(table))
    assert type(copy) is pd.DataFrame
    assert copy.attrs == table.attrs
    pd.testing.assert_frame_equal(copy, pd.DataFrame(table))


def test_the_roofline_of_nodes_on_the_cpu_says_why_it_is_empty():
    node = op(1, "matmul", 0, 90, category="node", session=1, input_shapes="float[2,2]")
    assert "The nodes ran on the CPU" in note(profile([node], info=CPU).roofline())
    assert "No node of an ONNX Runtime session with known" in note(on_cpu().roofline())
    without_nodes = profile([op(1, "step", 0, 90)], [kernel(0, 9, 1)]).roofline()
    assert "No node of an ONNX Runtime session with known" in note(without_nodes)
