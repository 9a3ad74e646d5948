"""Modules of PyTorch that launch a kernel with a name of its own forward, and one backward."""

from __future__ import annotations

import cupy
import torch

from tests.gpu.oracle import launch


def launch_on_torchs_stream(name: str) -> None:
    """Launch a kernel of this name where torch launches its own."""
    with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        launch(name)


class _Work(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, name):
        ctx.name = name
        launch_on_torchs_stream(f"{name}_forward")
        return values.clone()

    @staticmethod
    def backward(ctx, gradient):
        launch_on_torchs_stream(f"{ctx.name}_backward")
        return gradient.clone(), None


def work(values: torch.Tensor, name: str) -> torch.Tensor:
    """Launch a kernel now, and one in the backward pass."""
    return _Work.apply(values, name)


class Layer(torch.nn.Module):
    """A linear layer followed by kernels of the name `label`."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label = label
        self.linear = torch.nn.Linear(16, 16)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the values after the layer."""
        return work(self.linear(values), self.label)


LABELS = ("a", "b", "c", "loss")


def warm_up(model: torch.nn.Module, values: torch.Tensor) -> None:
    """Compile the kernels, and create the gradients."""
    for label in LABELS:
        launch(f"{label}_forward")
        launch(f"{label}_backward")
    model(values).sum().backward()
    torch.cuda.synchronize()


def modules_of_kernels(prof, column: str = "op_id") -> dict[str, set[str | None]]:
    """Modules that each kernel with a name of its own belongs to; None for no module."""
    ops = prof.ops
    parents = ops["parent_op_id"].fillna(0).astype(int).to_dict()
    types, names = ops["op_type"].astype(str).to_dict(), ops["name"].astype(str).to_dict()
    rows = prof.activities
    rows = rows[rows["name"].astype(str).str.fullmatch("[a-z]+_(forward|backward)")]
    found: dict[str, set[str | None]] = {}
    for name, op in zip(rows["name"], rows[column].fillna(0).astype(int), strict=True):
        at = op
        while at and types[at] not in {"module", "recompute", "backward"}:
            at = parents[at]
        found.setdefault(name, set()).add(names[at] if at else None)
    return found
