"""Python and the viewer of a static page answer the same queries alike.

The fixture holds the payload of a small profile, requests, and their answers; the viewer's test
(``frontend/test/data/embedded/parity.test.ts``) reads it, too. To write it anew, run this file.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib

from epprof_nb.data.schema import MEMORY_BLOCKS
from epprof_nb.views.queries.view_selection import Selections
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.widget.requests import handle
from epprof_nb.views.wire.page_payload import page_payload
from tests.helpers.memory_blocks import block
from tests.helpers.tiny import activity, call, kernel, line, op, profile, table
from tests.paths import DATA

FIXTURE = DATA / "queries.json"

KEYS = (
    "columns",
    "kinds",
    "names",
    "short_names",
    "texts",
    "slices",
    "shown",
    "counters",
    "holders",
    "source",
    "whole",
)
"""Keys of the payload's header that the embedded answers read."""

GEMM = "void blas::gemm<float, 4>(int*)"

REQUESTS = [
    *({"type": "related", "prefix": "op", "row": row} for row in range(4)),
    *({"type": "related", "prefix": "api", "row": row} for row in range(2)),
    *({"type": "related", "prefix": "act", "row": row} for row in range(5)),
    *({"type": "by_range", "start": start, "end": end}
      for start, end in ((0, 1_000), (120, 450), (150, 400), (745, 746), (900, 950))),
    *({"type": "seek", "selection": selection, **target}
      for selection in (
          {"what": "event", "prefix": "op", "row": 0},
          {"what": "where", "prefix": "act", "equals": {"kind": "kernel"}},
          {"what": "where", "prefix": "act", "equals": {"kind": ["memcpy", "memset"]}},
          {"what": "where", "prefix": "act", "equals": {"op_id": None}},
          {"what": "where", "prefix": "op", "equals": {"cell": "In[1]", "line": 3}},
          {"what": "where", "prefix": "op", "equals": {"name": "first"}},
          {"what": "search", "pattern": "gemm|first"},
          {"what": "search", "pattern": "GEMM"},
          {"what": "search", "pattern": "^cu"},
          {"what": "search", "pattern": r"gemm \[f32"},
      )
      for target in ({}, {"number": 0}, {"number": -1}, {"at": 350})),
    *({"type": "memory_at", "at": at} for at in (0, 99, 100, 350, 420, 5_000)),
]  # fmt: skip


def view_model() -> ViewModel:
    """A line with ranges that launch kernels and a copy, and work without an op on another stream.

    The rows of each table are in the order of the payload, which numbers events by lane.
    """
    ops = [
        line(1, 3, 0, 1_000),
        op(2, "first", 10, 200, 1),
        op(3, "second", 300, 600, 1),
        op(4, "inner", 320, 580, 3),
    ]
    calls = [
        call(20, 30, correlation_id=7, op_id=2),
        call(330, 340, correlation_id=8, op_id=4),
    ]
    activities = [
        kernel(100, 150, 2, correlation_id=7, name=GEMM),
        kernel(400, 500, 4, correlation_id=8, name=GEMM),
        activity("memcpy", 520, 540, 3, name="HtoD", bytes=4_096),
        activity("memset", 700, 750, name="memset", stream_id=13, bytes=64),
        activity("memcpy", 745, 800, name="DtoH", stream_id=13, bytes=1_024),
    ]
    small = profile(ops, activities, calls, sources={"In[1]": "a\nb\n  c = step(x)"})
    small.tables["memory_blocks"] = table(
        MEMORY_BLOCKS,
        [
            block(4_096, None, None, category="parameter"),
            block(512, None, 420),
            block(1 << 40, 100, 350, 2),
            block(1_024, 110, 350, 2),
            block(64, 330, None, 4, pool="driver"),
        ],
    )
    return ViewModel(small)


def fixture() -> dict[str, object]:
    """Return what the fixture should hold."""
    small = view_model()
    selections = Selections(small)
    payload = base64.b64encode(_reduced(zlib.decompress(page_payload(small)))).decode("ascii")
    answers = [
        {"request": request, "answer": handle(selections, request).content} for request in REQUESTS
    ]
    return json.loads(json.dumps({"payload": payload, "answers": answers}))


def _reduced(data: bytes) -> bytes:
    """The payload without parts that queries do not read, such as the summary's wording."""
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    text = json.dumps({key: header[key] for key in KEYS}).encode()
    return struct.pack("<I", len(text)) + text + data[4 + length :]


def test_python_answers_as_the_fixture_says():
    stored, expected = json.loads(FIXTURE.read_text("utf-8")), fixture()
    assert stored["answers"] == expected["answers"]
    assert stored["payload"] == expected["payload"], "the payload has changed: run this file"
    assert not any("error" in entry["answer"] for entry in stored["answers"])


if __name__ == "__main__":
    FIXTURE.write_text(json.dumps(fixture(), indent=1, ensure_ascii=False) + "\n", "utf-8")
