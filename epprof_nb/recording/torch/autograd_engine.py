"""Access of the native core to PyTorch's autograd engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from epprof_nb import _native

_LEAF = 2**64 - 1
"""Number of a node that accumulates a gradient."""
_opened = False


def open_engine() -> None:
    """Let the native core call the engine's functions that this release has.

    It reads nodes of the engine only if a test with new nodes succeeds.
    """
    global _opened  # noqa: PLW0603 - there is one engine in the process
    if _opened:
        return
    _opened = True
    torch = sys.modules["torch"]
    library = Path(str(torch.__file__)).parent / "lib" / "libtorch_cpu.so"
    if not _native.engine_open(str(library)):
        return
    # Active modes of the calling thread must not see these operators, which create new nodes.
    with (
        torch.inference_mode(mode=False),
        torch.enable_grad(),
        torch.utils._python_dispatch._disable_current_modes(),  # noqa: SLF001 - no public name
    ):
        leaf = torch.ones(1, dtype=torch.float32, device="cpu", requires_grad=True)
        first = leaf * 2
        second = first * leaf
        for node in (first.grad_fn, second.grad_fn):
            if not _is_as_expected(node):
                return


def _is_as_expected(node: Any) -> bool:  # noqa: ANN401 - a node of torch
    edges = [
        _LEAF if type(edge).__name__ == "AccumulateGrad" else edge._sequence_nr()  # noqa: SLF001
        for edge, _ in node.next_functions if edge is not None
    ]  # fmt: skip
    return _native.engine_check_node(node, node._sequence_nr(), edges)  # noqa: SLF001
