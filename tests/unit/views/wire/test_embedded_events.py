"""The blocks of a file have every event, even if the page merges events."""

from __future__ import annotations

import io
import re
import zlib

import numpy as np
import pytest

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.queries.event_fields import PREFIXES
from epprof_nb.views.renderers.html import page_html, write_page
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire import embedded_events, page_payload
from tests.unit.views.wire.test_wire_format import decode


@pytest.fixture
def view_model(monkeypatch):
    monkeypatch.setattr(embedded_events, "BLOCK", 256)
    monkeypatch.setattr(page_payload, "_MAX_RECTS", 400)
    return ViewModel(synthetic_profile(3_000))


def test_blocks_have_every_event(view_model):
    messages = {
        name: decode(zlib.decompress(data))
        for name, data in embedded_events.detail_blocks(view_model)
    }
    header, bounds = messages.pop("index")
    _, fine = messages.pop("counters")
    (at,) = (i for i, track in enumerate(view_model.tracks) if track["what"] == "busy")
    starts, ends = view_model.index.busy(0)
    # Exact at each change, which the page's 4,096 points are not for many more.
    assert np.array_equal(fine[f"counter.{at}.t"], np.stack([starts, ends], axis=1).reshape(-1))
    tables, layouts = view_model.profile.tables, view_model.layout.by_prefix()
    for prefix, table_name in PREFIXES.items():
        table, order = tables[table_name], layouts[prefix].event_rows.order
        blocks = [columns for name, (_, columns) in messages.items() if name.startswith(prefix)]
        assert len(blocks) == -(-len(order) // 256) == len(bounds[f"{prefix}.first"])
        joined = {
            name: np.concatenate([block[f"{prefix}.{name}"] for block in blocks])
            for name in ("start", "dur", "name", "op")
        }
        assert header["events"][prefix] == len(order) == layouts[prefix].is_drawn.sum()
        assert np.array_equal(joined["start"], table["start_ns"][order])
        assert np.array_equal(joined["dur"], (table["end_ns"] - table["start_ns"])[order])
        names = [header["names"][int(code)] if code >= 0 else None for code in joined["name"]]
        assert names == table.names("name").take(order).to_list()
        of_op = layouts["op"].event_rows.order
        ids = tables["ops"]["op_id"]
        known = joined["op"] >= 0
        parents = ids[of_op[joined["op"][known].astype(int)]]
        if prefix != "op":
            assert np.array_equal(parents, table["op_id"][order][known])
        for number, block in enumerate(blocks):
            start, end = block[f"{prefix}.start"], block[f"{prefix}.start"] + block[f"{prefix}.dur"]
            assert bounds[f"{prefix}.first"][number] == start.min()
            assert bounds[f"{prefix}.last"][number] == end.max()


def test_only_files_of_merged_events_have_blocks(view_model):
    file = io.BytesIO()
    write_page(view_model, file)
    blocks = re.findall(r'id="epprof-(op|api|act|index)', file.getvalue().decode())
    assert {"op", "api", "act", "index"} == set(blocks)
    assert "epprof-index" not in page_html(view_model)
    small = io.BytesIO()
    write_page(ViewModel(synthetic_profile(50)), small)
    assert b"epprof-index" not in small.getvalue()


def test_a_page_of_merged_events_has_exact_totals(view_model):
    header, columns = decode(zlib.decompress(page_payload.page_payload(view_model, max_rects=400)))
    layouts = view_model.layout.by_prefix()
    for prefix in PREFIXES:
        members = columns[f"group.{prefix}.members"]
        assert members.sum() == layouts[prefix].is_drawn.sum() > len(columns[f"{prefix}.start"])
    kinds = columns["bins.kind"][columns["bins.group"].astype(int)]
    assert columns["bins.started"][kinds == 1].sum() == header["whole"]["kernels"]
