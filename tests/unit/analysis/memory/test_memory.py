"""Holders, pools, categories and sums of memory, in hand-made profiles."""

from decimal import Decimal

import numpy as np
import pytest

import epprof_nb
from epprof_nb import host
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.memory.memory_at import holder_table
from epprof_nb.data.schema import MEMORY, MEMORY_BLOCKS, MEMORY_SEGMENTS
from epprof_nb.views.queries.memory_holders import holders_at
from epprof_nb.views.renderers.text import as_text
from epprof_nb.views.view_model import ViewModel
from tests.helpers import tiny

MB = 1 << 20


def block(size, begin, end, op_id=None, **more):
    row = {"pool": "torch", "device_id": 0, "bytes": size, "requested_bytes": size - 1}
    return row | {"allocated_ns": begin, "freed_ns": end, "op_id": op_id, "address": 0} | more


def framework(op_id, op_type, start, end, parent, name=None, **more):
    more = {"op_type": op_type, "category": "framework", "source": "torch"} | more
    return tiny.op(op_id, name or op_type, start, end, parent, **more)


def with_memory(ops, blocks, segments=()):
    prof = tiny.profile(ops, info={"detail": "memory", "wall_ns": 1000, "code_ns": 1000})
    prof.tables["memory_blocks"] = tiny.table(MEMORY_BLOCKS, blocks)
    prof.tables["memory_segments"] = tiny.table(MEMORY_SEGMENTS, segments)
    return prof


TRAINING = [
    tiny.line(1, 1, 0, 300, name="loss = model(batch)"),
    framework(2, "module", 10, 290, 1, "model"),
    framework(3, "module", 100, 200, 2, "model.layer"),
    tiny.line(4, 2, 300, 600, name="loss.backward()"),
    framework(5, "autograd", 310, 590, 4, "backward"),
    framework(6, "backward", 320, 580, 5, "model.layer", thread_id=2),
    tiny.line(7, 3, 600, 900, name="optimizer.step()"),
    framework(8, "optimizer", 610, 890, 7, "AdamW.step"),
]
BLOCKS = [
    block(100, None, None, category="parameter"),
    block(10, None, 50),
    block(40, 120, 400, 3),  # activation
    block(7, 130, 180, 3),  # temporary
    block(20, 20, 595, 2),  # released after the backward pass
    block(30, 330, 895, 6),  # gradient
    block(5, 340, 500, 6),
    block(60, 620, None, 8, category="optimizer state"),
    block(8, 630, 880, 8),
    block(3, 700, None),
]


def test_categories_follow_from_lives():
    at_peak = with_memory(TRAINING, BLOCKS).memory_at()
    categories = [None if value != value else value for value in at_peak["category"]]
    assert list(zip(categories, at_peak["bytes"], strict=True)) == [
        ("parameter", 100), ("optimizer state", 60), ("gradient", 30), ("temporary", 8),
        (None, 3),
    ]  # fmt: skip
    in_forward = with_memory(TRAINING, BLOCKS).memory_at(150)
    assert in_forward.set_index("category")["bytes"].to_dict() == {
        "parameter": 100, "activation": 40, "other": 20, "temporary": 7,
    }  # fmt: skip
    assert in_forward["module"].tolist()[1:] == ["model.layer", "model", "model.layer"]


def test_the_output_of_a_model_is_no_input():
    given = {"category": "input"}
    blocks = [block(40, None, None, **given), block(30, 5, None, 1, **given),
              block(20, 120, 400, 3, **given)]  # fmt: skip
    found = with_memory(TRAINING, blocks).memory_at(150)
    assert found.set_index("bytes")["category"].to_dict() == {
        40: "input", 30: "input", 20: "activation",
    }  # fmt: skip


def test_what_a_library_keeps_is_no_gradient():
    kept = [block(70, 340, None, 6), block(50, 345, None, 6, pool="driver")]
    found = with_memory(TRAINING, kept).memory_at()
    assert found["category"].tolist() == ["other", "other"]


def test_forward_without_a_backward_pass_is_undecided():
    blocks = [block(40, 120, None, 3), block(7, 130, 180, 3)]
    found = with_memory(TRAINING[:3], blocks).memory_at(150)
    assert found["category"].tolist() == ["forward, undecided", "temporary"]


def test_the_peak_is_that_of_all_pools_together():
    blocks = [
        block(10, 0, 50), block(30, 50, 60), block(25, 70, None), block(9, 0, None, pool="host"),
    ]  # fmt: skip
    prof = with_memory([], blocks)
    assert prof.memory_at()["bytes"].tolist() == [30, 9]  # the first is released at that moment
    assert prof.memory_at("end")["bytes"].sum() == 34
    assert prof.memory_at(0)["bytes"].sum() == 19
    with pytest.raises(ValueError, match="'peak', 'end'"):
        prof.memory_at("start")


def test_holders_keep_their_lines():
    holders = with_memory(TRAINING, BLOCKS).memory_at()
    assert holders["line"].fillna(0).tolist() == [0, 3, 2, 3, 0]
    assert holders["name"].tolist()[::4] == ["(before this profile)", "(op unknown)"]
    assert holders["requested_bytes"].tolist() == [99, 59, 29, 7, 2]


def test_repeated_calls_share_a_row():
    calls = [
        op
        for start in range(0, 900, 300)
        for op in (
            tiny.line(start + 1, 1, start, start + 200, name="y = model(x)"),
            framework(start + 2, "module", start + 10, start + 190, start + 1, "model"),
            tiny.op(start + 3, "relu", start + 20, start + 180, start + 2),
        )
    ]
    blocks = [block(10, start + 30, None, start + 3) for start in range(0, 900, 300)]
    blocks += [block(10, start + 15, None, start + 2) for start in range(0, 900, 300)]
    found = with_memory(calls, blocks).memory_at("end")
    shown = found[["module", "line", "name", "bytes", "requested_bytes", "blocks"]]
    assert shown.to_numpy().tolist() == [
        ["model", 1, "relu", 30, 27, 3], ["model", 1, "model", 30, 27, 3],
    ]  # fmt: skip


def test_holders_from_before_have_the_line_of_an_earlier_profile():
    blocks = [
        block(40, None, None, earlier_cell="In[7]", earlier_line=3),
        block(30, None, None, earlier_cell="In[7]", earlier_line=4),
        block(20, 20, None, 3),
    ]
    holders = with_memory(TRAINING, blocks).memory_at("end")
    assert holders["cell"].tolist()[:2] == ["In[7]", "In[7]"]
    assert holders["line"].tolist() == [3, 4, 1]
    assert holders["name"].tolist()[0] == "(before this profile)"


@pytest.mark.parametrize("at", [None, b"peak", ["peak"], 1.5, float("nan"), True, Decimal(1)])
def test_a_time_is_a_whole_number_or_text(at):
    prof = with_memory(TRAINING, BLOCKS)
    for table in (prof.memory_at, prof.memory_pools):
        with pytest.raises(TypeError, match=r"a time cannot be .*; choose whole nanoseconds"):
            table(at)
        for time in (np.int64(150), 150.0):
            assert table(time).equals(table(150))


@pytest.mark.parametrize("name", ["by_op", "by_line", "by_module"])
def test_an_unknown_attribution_is_refused_with_memory_too(name):
    with pytest.raises(ValueError, match="attribution must be"):
        getattr(with_memory(TRAINING, BLOCKS), name)(memory=True, attribution="end")


def test_sums_by_op_line_and_module_add_up():
    prof = with_memory(TRAINING, BLOCKS)
    assert prof.by_op(memory=True)["self_allocated_bytes"].sum() == 173
    for table in (prof.by_line(memory=True), prof.by_module(memory=True)):
        assert table["allocated_bytes"].sum() == 173
        assert table["freed_bytes"].sum() == 120
        for at, known in (("peak", "peak_bytes"), ("end", "end_bytes")):
            held = prof.memory_at(at).query("name != '(before this profile)'")
            assert table[known].sum() == held["bytes"].sum() > 0
        assert (table["blocks"] > 0).equals(table["allocated_bytes"] > 0)
        assert not (table["peak_bytes"] > table["allocated_bytes"]).any()
        assert (table["net_bytes"] == table["allocated_bytes"] - table["freed_bytes"]).all()
    by_line = prof.by_line(memory=True).set_index("name")["allocated_bytes"]
    assert by_line["loss.backward()"] == 35
    by_module = prof.by_module(memory=True).set_index("path")["allocated_bytes"]
    assert by_module.to_dict() == {"(outside of modules)": 71, "model.layer": 82, "model": 20}


def test_the_memory_of_an_op_includes_that_of_ops_inside_it():
    ops = [
        tiny.op(1, "layer", 0, 400, args={"layer": 0}),
        tiny.line(2, 3, 10, 200, 1),
        tiny.op(3, "layer", 20, 100, 2, args={"layer": 1}),
        tiny.op(4, "layer", 500, 600, args={"layer": 1}),
    ]
    blocks = [block(30, 30, None, 3), block(20, 120, 300, 2), block(5, 510, None, 4)]
    blocks += [block(1, 450, None)]
    prof = with_memory(ops, blocks)
    table = prof.by_op(memory=True)
    columns = ["allocated_bytes", "self_allocated_bytes", "peak_bytes", "end_bytes", "blocks"]
    names = ["layer", prof.ops.at[2, "name"], "(op unknown)"]
    assert table["name"].tolist() == names
    assert table[columns].to_numpy().tolist() == [
        [55, 35, 50, 35, 3], [50, 20, 50, 30, 2], [1, 1, 0, 1, 1],
    ]  # fmt: skip
    table = prof.by_op(memory=True, args=["layer"]).query("name == 'layer'")
    assert table.set_index("arg_layer")["allocated_bytes"].to_dict() == {0: 50, 1: 35}
    with pytest.raises(ValueError, match="no op of this profile has an argument 'size'"):
        prof.by_op(memory=True, args=["size"])


def test_what_was_there_before_is_not_said_to_be_none():
    table = with_memory(TRAINING, [block(100, None, None)])
    for frame in (table.by_op(memory=True), table.by_module(memory=True)):
        assert not len(frame)
        assert "allocated or released in this profile: `memory_at()`" in frame.attrs["note"]
    note = with_memory(TRAINING, []).by_module(memory=True).attrs["note"]
    assert note.startswith("No memory of a device was in use")
    assert note.endswith("Memory of the CPU is not recorded, not even of PyTorch's tensors there.")


def test_the_summary_has_the_peak_and_the_pools():
    text = with_memory(TRAINING, BLOCKS).summary()
    assert "memory 201 B in use at the peak" in text
    assert "torch 201 B" in text


def test_pools_show_free_memory_and_its_largest_piece():
    segments = [
        {"pool": "torch", "device_id": 0, "address": 1000, "bytes": 100, "allocated_ns": None},
        {"pool": "torch", "device_id": 0, "address": 5000, "bytes": 50, "allocated_ns": 10},
        {"pool": "torch graph 1", "device_id": 0, "address": 9000, "bytes": 64},
    ]
    blocks = [
        block(20, 0, None, address=1010), block(10, 0, 40, address=1030),
        block(50, 20, None, address=5000), block(64, 0, None, address=9000, pool="torch graph 1"),
    ]  # fmt: skip
    pools = with_memory([], blocks, [{"freed_ns": None, "allocated_ns": 0} | s for s in segments])
    rows = pools.memory_pools().set_index("pool")
    assert rows.loc["torch"].tolist()[1:6] == [150, 70, 80, 80, 70]
    assert rows.loc["torch", "fragmentation"] == pytest.approx(1 - 70 / 80)
    assert rows.loc["torch graph 1"].tolist()[1:-1] == [64, 64, 64, 0, 0, 0.0]
    assert pools.memory_pools(30).set_index("pool").loc["torch", "free_bytes"] == 70
    assert pools.memory_pools(5).set_index("pool").loc["torch", "held_bytes"] == 100


def test_the_pools_and_the_rest_are_what_the_process_holds():
    segment = {"pool": "torch", "device_id": 0, "address": 0, "bytes": 500, "allocated_ns": 0}
    prof = with_memory([], [block(200, 0, None)], [segment | {"freed_ns": None}])
    prof.info["memory"] = {"context_bytes": 90}
    prof.info["gpu"] = {"after": {"gpus": [{"own_memory_bytes": 600}, {}]}}
    pools = prof.memory_pools().set_index("pool")
    assert pools["held_bytes"].to_dict() == {"torch": 500, "context": 90, "(unnamed)": 10}
    assert pools.loc["(unnamed)", "note"].startswith("1.7 % of what the process holds: ")
    text = as_text(ViewModel(prof))
    assert "600 B held by this process" in text
    assert "(unnamed) 10 B (1.7 % of what the process holds)" in text


def layered(driver, **memory):
    """A profile of which NVML says 1000 bytes, with `driver` segments and 500 bytes of torch."""
    torch = {"pool": "torch", "device_id": 0, "address": 0, "bytes": 500, "allocated_ns": 0}
    prof = with_memory([], [block(200, 0, None)], [torch | {"freed_ns": None}, *driver])
    prof.info["memory"] = {"process_bytes": 1000, **memory}
    return prof


def of_driver(size, begin, end=None):
    row = {"pool": "driver", "device_id": 0, "address": 5000, "bytes": size}
    return row | {"allocated_ns": begin, "freed_ns": end}


LOADED = "code and local memory"


def library(held, before, note="", **more):
    row = {"pool": "CuPy", "device_id": 0, "held_bytes": held, "in_use_bytes": 5, "note": note}
    return row | {"held_before_bytes": before} | more


@pytest.mark.parametrize(
    ("driver", "pool", "expected"),
    [
        ([of_driver(80, 3)], library(100, 60), {"CuPy": 100, "driver": 40, "(unnamed)": 360}),
        ([of_driver(80, 3)], library(100, 100), {"CuPy": 100, "driver": 80, "(unnamed)": 320}),
        # The pool may have replaced what was released.
        (
            [of_driver(80, 3), of_driver(30, None, 2)],
            library(100, 100),
            {"CuPy": 100, "driver": 50, "(unnamed)": 350},
        ),
        ([of_driver(10, 3)], library(100, 0), {"CuPy": 100, "driver": 0, "(unnamed)": 400}),
    ],
)
def test_what_a_library_took_from_the_driver_counts_once(driver, pool, expected):
    rows = layered(driver, pools=[pool]).memory_pools().set_index("pool")
    assert rows["held_bytes"].to_dict() == {"torch": 500, **expected}
    assert rows["held_bytes"].sum() == 1000
    assert rows.loc["CuPy", "free_bytes"] == pool["held_bytes"] - 5
    assert "CuPy" in rows.loc["driver", "note"]


def test_pools_that_cannot_be_read_are_named_and_missing_in_the_sum():
    pool = library(None, 0, "CuPy does not report it: broken", in_use_bytes=None)
    prof = layered([], pools=[pool])
    prof.info["onnxruntime_providers"] = {
        "1": ["CUDAExecutionProvider"], "2": ["CPUExecutionProvider"],
    }  # fmt: skip
    prof.info["onnxruntime_sessions"] = {"1": "decoder", "2": "tokenizer"}
    rows = prof.memory_pools().set_index("pool")
    assert rows.loc["CuPy", "note"] == "CuPy does not report it: broken"
    assert rows.loc["ONNX Runtime", "note"].endswith(": decoder")
    assert rows.loc[["CuPy", "ONNX Runtime"], "held_bytes"].isna().all()
    assert rows.loc["(unnamed)", "note"].endswith("; also CuPy, ONNX Runtime")
    assert "CuPy unknown" in as_text(ViewModel(prof))


def test_memory_of_a_process_that_nothing_tells_is_unknown():
    prof = layered([], context_bytes=90)
    del prof.info["memory"]["process_bytes"]
    rows = prof.memory_pools().set_index("pool")
    assert rows.loc["context", "held_bytes"] == 90
    assert "NVML does not list it" in rows.loc["(unnamed)", "note"]
    assert rows["held_bytes"].isna().tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, {"context": 90, "(before this profile)": 60, LOADED: 170, "(unnamed)": 0}),
        (
            {"context_bytes": None},
            {"(before this profile)": 150, LOADED: 170, "(unnamed)": 0},
        ),
        # Some of it was released in the profile.
        ({"process_bytes": 800}, {"context": 90, "(before this profile)": 30, "(unnamed)": 0}),
        ({"process_before_bytes": 200}, {"context": 90, LOADED: 230, "(unnamed)": 0}),
        ({"process_before_bytes": None}, {"context": 90, "(unnamed)": 230}),
        ({"process_before_bytes": 0}, {"context": 90, LOADED: 230, "(unnamed)": 0}),
        # The context is not measured if there are several GPUs.
        (
            {"process_before_bytes": 0, "context_bytes": None},
            {f"context, {LOADED}": 320, "(unnamed)": 0},
        ),
        ({"process_before_bytes": 0, "process_bytes": 700}, {"context": 90, "(unnamed)": 0}),
    ],
)
def test_what_the_process_held_before_the_profile_is_no_unnamed_memory(known, expected):
    torch = {"pool": "torch", "device_id": 0, "address": 0x9000, "bytes": 100}
    older = torch | {"allocated_ns": None, "freed_ns": None}
    memory = {"process_before_bytes": 300, "context_bytes": 90, "pools": [library(80, 50)]} | known
    prof = layered([older], **{name: value for name, value in memory.items() if value is not None})
    allocation = {"operation": "allocation", "address": 0x9000, "time_ns": 0}
    prof.tables["memory"] = tiny.table(MEMORY, [allocation])
    held = prof.memory_pools().set_index("pool")["held_bytes"].to_dict()
    assert held == {"torch": 600, "CuPy": 80, **expected}


@pytest.mark.parametrize("cause", ["nothing recorded", "records lost", "a pool is unknown"])
def test_what_was_not_recorded_is_not_the_drivers_own(cause):
    prof = layered([], process_before_bytes=0, context_bytes=90)
    if cause != "nothing recorded":
        allocation = {"operation": "allocation", "address": 1, "time_ns": 0}
        prof.tables["memory"] = tiny.table(MEMORY, [allocation])
    if cause == "records lost":
        prof.info["recorded"] = {"launched": {"kernel": 9}, "lost": {"kernel": 9}}
    if cause == "a pool is unknown":
        prof.info["memory"]["pools"] = [library(None, 0)]
    held = prof.memory_pools().set_index("pool")["held_bytes"]
    assert held["(unnamed)"] == 410
    assert LOADED not in held


def test_the_driver_names_the_libraries_that_allocated_from_it():
    prof = layered([of_driver(80, 3) | {"address": 1}, of_driver(40, 4), of_driver(9, None)])
    prof.tables["memory"] = tiny.table(
        MEMORY,
        [
            {"operation": "allocation", "address": address, "time_ns": time, "library": library}
            for address, time, library in [
                (1, 2, "libreused.so"), (1, 3, "libcublasLt.so.13"), (5000, 4, "libnccl.so.2"),
            ]
        ],
    )  # fmt: skip
    notes = prof.memory_pools().set_index("pool")["note"]
    assert notes["driver"] == "80 B from libcublasLt.so.13, 40 B from libnccl.so.2"
    assert prof.memory_pools(3).set_index("pool")["note"]["driver"] == "80 B from libcublasLt.so.13"


def test_the_rest_is_that_of_the_end_at_any_time():
    prof = layered([of_driver(80, 3)])
    assert prof.memory_pools(1).set_index("pool")["held_bytes"].to_dict() == {
        "torch": 500, "(unnamed)": 420, "driver": 0,
    }  # fmt: skip


def test_the_host_device_is_no_part_of_the_gpus():
    on_host = {"pool": "host device", "device_id": 1000, "address": 9, "bytes": 700}
    prof = layered([on_host | {"allocated_ns": None, "freed_ns": None}])
    held = prof.memory_pools().set_index("pool")["held_bytes"]
    assert held.to_dict() == {"host device": 700, "torch": 500, "(unnamed)": 500}


def test_lines_below_the_headline():
    text = as_text(ViewModel(with_memory(TRAINING, BLOCKS)))
    assert "memory  201 B in use at the peak" in text
    assert "`model.layer` holds the most of a module at the peak: 30 B (gradient)" in text
    assert "memory" not in as_text(ViewModel(with_memory(TRAINING, [])))


def test_pools_of_several_gpus_have_their_names():
    segments = [
        {"pool": pool, "device_id": device, "address": address, "bytes": size, "freed_ns": None}
        | {"allocated_ns": 0}
        for pool, device, address, size in [
            ("torch", 0, 0, 100), ("torch", 1, 5000, 300), ("driver", 1, 9000, 80),
        ]
    ]  # fmt: skip
    segments[2]["freed_ns"] = 5
    blocks = [block(60, 10, None), block(90, 20, None) | {"device_id": 1, "address": 5000}]
    text = as_text(ViewModel(with_memory([], blocks, segments)))
    assert "torch on device 1 90 B (210 B cached and unused)" in text
    assert "torch on device 0 60 B (40 B cached and unused)" in text
    assert "driver" not in text  # nothing of it is left at the peak


@pytest.mark.usefixtures("only_own_host_memory")
def test_the_pool_of_the_host_device(tmp_path):
    before = host.empty(1000, np.float64)
    with epprof_nb.profile(detail="memory") as prof:
        with epprof_nb.op("load"):
            kept, gone = host.empty(1000), host.empty(500)
        with epprof_nb.op("drop"):
            del gone, before
    prof.save(tmp_path / "memory.epprof")
    for shown in (prof, epprof_nb.load(tmp_path / "memory.epprof")):
        assert shown.memory_at()[["name", "bytes"]].to_numpy().tolist() == [
            ["(before this profile)", 8000], ["load", 6000],
        ]  # fmt: skip
        assert shown.memory_at("end")["bytes"].sum() == kept.nbytes
        freed = shown.by_op(memory=True).set_index("name")["freed_bytes"]
        assert freed["drop"] == 10_000
        assert shown.memory_pools()["held_bytes"].tolist() == [4000]


@pytest.mark.parametrize("at", [-5, 10**15])
def test_a_time_outside_of_the_profile_is_refused(at):
    prof = with_memory(TRAINING, BLOCKS)
    for table in (prof.memory_at, prof.memory_pools):
        with pytest.raises(ValueError, match=rf"^{at} ns is outside .* from 0 to \d+ ns"):
            table(at)


def test_a_view_may_ask_for_any_time():
    index = ProfileIndex(with_memory(TRAINING, BLOCKS))
    assert holders_at(index, 10**15)["bytes"] == holder_table(index, "end")["bytes"].tolist()
    assert len(holder_table(index, -5)) == 0


@pytest.mark.parametrize(("time", "held"), [(19, 0), (20, 100), (49, 100), (50, 0)])
def test_a_segment_is_held_from_its_allocation_to_its_release(time, held):
    segment = {"pool": "torch", "device_id": 0, "bytes": 100, "address": 0,
               "allocated_ns": 20, "freed_ns": 50}  # fmt: skip
    pools = with_memory([], [block(10, 20, 50)], [segment]).memory_pools(time)
    assert pools.set_index("pool").loc["torch", ["held_bytes", "in_use_bytes"]].tolist() == [
        held, held // 10,
    ]  # fmt: skip
