"""A profile to save, and a comparison of saved and loaded profiles."""

import pandas as pd

from epprof_nb.data.schema import TABLES
from tests.helpers.tiny import activity, call, kernel, line, op, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks


def some():
    stacks, (inner, _) = stack_rows("In[1]:1 model.py:f:7", "In[1]:1 lib/nn.py:g:3")
    saved = profile(
        ops=[
            op(1, "In[1]", -5, 100, op_type="cell", args={"layer": 3, "text": "ü<&>\"'"}),
            line(2, 1, 0, 90, 1),
            op(2**62, "no args", 1, 2, 2),
        ],
        activities=[
            kernel(0, 10, 2, name="void f<int>(int*)", stack_id=inner, stack_source="exact"),
            activity("memcpy", 5, 6, bytes=9),
        ],
        api_calls=[call(0, 1, correlation_id=4, captured=1)],
        info={"wall_ns": 100, "notes": ["a note"], "devices": [{"device_id": 0}], "error": None},
        sources={"In[1]": "x = 1\ny = '\u2028'\n"},
    )
    return with_stacks(saved, stacks)


def assert_same(one, other):
    assert one.info == other.info
    assert one.sources == other.sources
    for schema in TABLES:
        left, right = one.tables[schema.name], other.tables[schema.name]
        pd.testing.assert_frame_equal(left.to_frame(), right.to_frame())
