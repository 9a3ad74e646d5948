"""Calls of PyTorch's process groups in Kineto traces: their communicator, size and kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from epprof_nb.files.readers.kineto_event_fields import Args

COLLECTIVE = "record_param_comms"
"""Name of the op around the launch of each collective; its arguments describe it."""

_BYTES = {
    "Bool": 1, "Byte": 1, "Char": 1, "Short": 2, "Half": 2, "BFloat16": 2, "Int": 4, "Float": 4,
    "Long": 8, "Double": 8, "ComplexHalf": 4, "ComplexFloat": 8, "ComplexDouble": 16,
    "Float8_e4m3fn": 1, "Float8_e4m3fnuz": 1, "Float8_e5m2": 1, "Float8_e5m2fnuz": 1,
    "UInt16": 2, "UInt32": 4, "UInt64": 8,
}  # fmt: skip
_MOST = 200
_LIMIT = 2**62


def collective_of(args: Args) -> str | None:
    """Return the arguments of the op of a collective as JSON; None if they are incomplete.

    They have the names of arguments of recorded calls. The size is the size of a rank's message, as
    NCCL counts it: a rank of an all-gather sends it, a rank of a reduce-scatter receives it.
    """
    if not (_is_name(args.communicator) and _is_name(args.collective)):
        return None
    of_call = {"collective": args.collective, "communicator": args.communicator}
    if type(args.ranks) is int and 0 < args.ranks < 2**31:
        of_call["ranks"] = args.ranks
    kind = args.collective.lower().replace("_", "")
    elements = args.received if "reducescatter" in kind else args.sent
    size = _BYTES.get(args.element) if type(args.element) is str else None
    if size is not None and type(elements) is int and 0 <= elements < _LIMIT // 16:
        of_call["bytes"] = size * elements
    return orjson.dumps(of_call).decode()


def _is_name(value: object) -> bool:
    return type(value) is str and 0 < len(value) <= _MOST and value.isprintable()
