"""Write ``tests/data/models/*.onnx``: small models as PyTorch exports them, for `tests.ep.models`.

    python -m tests.tools.make_torch_models

The packages torch and onnx are needed. Weights are left out of the files, and random numbers take
their place when a test loads a model; shapes and the other constants stay.
"""

from __future__ import annotations

import io
import math

import onnx
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - PyTorch's convention

from tests.paths import ROOT
from tests.tools.resnet import resnet50

OUTPUT = ROOT / "tests" / "data" / "models"
LARGE = 64
"""Floating-point weights with more elements are left out."""


class Bert(nn.Module):
    """An encoder of two layers, with token, position and segment embeddings and a mask."""

    def __init__(self, hidden: int = 32, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.tokens, self.segments = nn.Embedding(100, hidden), nn.Embedding(2, hidden)
        self.positions = nn.Embedding(64, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.layers = nn.ModuleList(
            nn.ModuleDict({
                "q": nn.Linear(hidden, hidden), "k": nn.Linear(hidden, hidden),
                "v": nn.Linear(hidden, hidden), "o": nn.Linear(hidden, hidden),
                "n1": nn.LayerNorm(hidden, eps=1e-12), "n2": nn.LayerNorm(hidden, eps=1e-12),
                "up": nn.Linear(hidden, 4 * hidden), "down": nn.Linear(4 * hidden, hidden),
            })
            for _ in range(layers)
        )  # fmt: skip
        self.pooler = nn.Linear(hidden, hidden)

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, -1).permute(0, 2, 1, 3)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        place = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        x = self.tokens(input_ids) + self.segments(token_type_ids) + self.positions(place)
        x = self.norm(x)
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            q, k, v = (self._split(layer[n](x)) for n in "qkv")
            scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1]) + mask
            y = torch.matmul(F.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous()
            x = layer["n1"](x + layer["o"](y.view(x.shape[0], x.shape[1], -1)))
            x = layer["n2"](x + layer["down"](F.gelu(layer["up"](x))))
        return x, torch.tanh(self.pooler(x[:, 0]))


class Gpt2(nn.Module):
    """A decoder of two layers with keys and values of earlier tokens as inputs and outputs."""

    def __init__(self, hidden: int = 32, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.heads, self.count = heads, layers
        self.tokens, self.positions = nn.Embedding(100, hidden), nn.Embedding(64, hidden)
        self.layers = nn.ModuleList(
            nn.ModuleDict({
                "n1": nn.LayerNorm(hidden), "qkv": nn.Linear(hidden, 3 * hidden),
                "o": nn.Linear(hidden, hidden), "n2": nn.LayerNorm(hidden),
                "up": nn.Linear(hidden, 4 * hidden), "down": nn.Linear(4 * hidden, hidden),
            })
            for _ in range(layers)
        )  # fmt: skip
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, 100, bias=False)

    def forward(self, input_ids: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        before = past[0].shape[3]
        length = input_ids.shape[1]
        place = torch.arange(before, before + length, device=input_ids.device)
        x = self.tokens(input_ids) + self.positions(place)
        allowed = torch.tril(torch.ones(before + length, before + length, dtype=torch.bool))
        allowed = allowed[before:]
        present = []
        for layer, cached in zip(self.layers, past, strict=True):
            parts = layer["qkv"](layer["n1"](x)).split(x.shape[2], dim=2)
            q, k, v = (
                p.view(p.shape[0], p.shape[1], self.heads, -1).transpose(1, 2) for p in parts
            )
            k, v = torch.cat([cached[0], k], dim=2), torch.cat([cached[1], v], dim=2)
            present.append(torch.stack([k, v]))
            scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
            scores = torch.where(allowed, scores, torch.full_like(scores, -10000.0))
            y = torch.matmul(F.softmax(scores, dim=-1), v).transpose(1, 2)
            x = x + layer["o"](y.reshape(x.shape))
            x = x + layer["down"](F.gelu(layer["up"](layer["n2"](x)), approximate="tanh"))
        return (self.head(self.norm(x)), *present)


class _Inverted(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, factor: int) -> None:
        super().__init__()
        wide = inputs * factor
        self.adds = stride == 1 and inputs == outputs
        self.body = nn.Sequential(
            nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide),
            nn.ReLU6(), nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.adds else self.body(x)


def mobilenet() -> nn.Module:
    """MobileNet v2: 17 inverted residuals with depthwise convolutions, a quarter as wide."""
    layers: list[nn.Module] = [nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6()]
    inputs = 8
    for factor, outputs, blocks, first in (
        (1, 4, 1, 1), (6, 6, 2, 2), (6, 8, 3, 2), (6, 16, 4, 2), (6, 24, 3, 1), (6, 40, 3, 2),
        (6, 80, 1, 1),
    ):  # fmt: skip
        for block in range(blocks):
            layers.append(_Inverted(inputs, outputs, first if not block else 1, factor))
            inputs = outputs
    layers += [nn.Conv2d(inputs, 320, 1, bias=False), nn.BatchNorm2d(320), nn.ReLU6()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(320, 10)]
    return nn.Sequential(*layers)


def export(
    name: str, module: nn.Module, inputs: tuple[torch.Tensor, ...], **options: object
) -> None:
    """Export a model and write it without its weights."""
    buffer = io.BytesIO()
    torch.onnx.export(module.eval(), inputs, buffer, opset_version=17, dynamo=False, **options)
    model = onnx.load_from_string(buffer.getvalue())
    for weight in model.graph.initializer:
        if weight.data_type == onnx.TensorProto.FLOAT and math.prod(weight.dims) > LARGE:
            weight.ClearField("raw_data")
    for node in model.graph.node:
        node.ClearField("doc_string")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / f"{name}.onnx").write_bytes(model.SerializeToString())
    print(name, len(model.graph.node), "nodes")


def main() -> None:
    """Export all models."""
    torch.manual_seed(0)
    ids, ones = torch.ones(2, 8, dtype=torch.int64), torch.ones(2, 8, dtype=torch.int64)
    text = ["input_ids", "attention_mask", "token_type_ids"]
    free = {name: {0: "batch", 1: "sequence"} for name in text}
    export("bert", Bert(), (ids, ones, ones * 0), input_names=text,
           output_names=["hidden", "pooled"], dynamic_axes=free)  # fmt: skip
    past = tuple(torch.zeros(2, 2, 4, 3, 8) for _ in range(2))
    names = [f"past_{i}" for i in range(2)]
    free = {name: {1: "batch", 3: "past"} for name in names}
    export("gpt2", Gpt2(), (ids[:, :1], *past), input_names=["input_ids", *names],
           output_names=["logits", "present_0", "present_1"],
           dynamic_axes={"input_ids": {0: "batch", 1: "sequence"}, **free})  # fmt: skip
    image = torch.zeros(1, 3, 64, 64)
    for name, module in (("resnet50", resnet50(width=8, classes=10)), ("mobilenet", mobilenet())):
        export(name, module, (image,), input_names=["image"], output_names=["scores"],
               dynamic_axes={"image": {0: "batch"}})  # fmt: skip


if __name__ == "__main__":
    main()
