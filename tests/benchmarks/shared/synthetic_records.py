"""Raw CUPTI kernel records made with NumPy, for measuring the decoder and the join."""

from __future__ import annotations

import numpy as np

from epprof_nb.recording.cupti import layouts as abi

API_VERSION = 130001


def kernel_records(count: int, first_correlation: int, start_ns: int) -> bytes:
    """`count` kernel records of CUPTI 13.0, one after the other, names left out."""
    struct = abi.layout_for(API_VERSION).records["kernel"]
    raw = np.zeros((count, struct.size), np.uint8)

    def put(field: str, values: object) -> None:
        place = struct.fields[field]
        cells = np.broadcast_to(np.asarray(values, f"<u{place.width}"), count)
        raw[:, place.offset : place.offset + place.width] = (
            np.ascontiguousarray(cells).view(np.uint8).reshape(count, place.width)
        )

    index = np.arange(count)
    put("kind", abi.ENUMERATORS["CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"])
    put("start", start_ns + index * 5000)
    put("end", start_ns + index * 5000 + 1000)
    put("correlationId", first_correlation + index)
    put("streamId", 7)
    put("contextId", 1)
    for axis in "XYZ":
        put(f"grid{axis}", 1)
        put(f"block{axis}", 1)
    put("registersPerThread", 16)
    return raw.tobytes()
