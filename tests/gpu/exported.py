"""Models exported by torch: a BERT and a ResNet-50."""

from __future__ import annotations

import io
from functools import cache

import numpy as np


def get(name: str, shapes: int = 1):
    """The model, serialised, and inputs of as many different shapes."""
    rng = np.random.default_rng(0)
    if name == "bert":
        feeds = [
            {"ids": rng.integers(0, 1000, (2 + i, 64)).astype(np.int64)} for i in range(shapes)
        ]
    else:
        feeds = [
            {"x": rng.standard_normal((2 + i, 3, 224, 224)).astype(np.float32)}
            for i in range(shapes)
        ]
    return _exported(name), feeds


@cache
def _exported(name: str) -> bytes:
    import pytest

    torch = pytest.importorskip("torch")
    if name == "bert":
        transformers = pytest.importorskip("transformers")
        config = transformers.BertConfig(
            num_hidden_layers=6, vocab_size=1000, attn_implementation="eager"
        )
        model = transformers.BertModel(config)

        class Encoder(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, ids):
                return self.model(input_ids=ids).last_hidden_state

        module, example = Encoder().eval(), (torch.zeros(2, 64, dtype=torch.long),)
        names, axes = ["ids"], {"ids": {0: "batch"}}
    else:
        torchvision = pytest.importorskip("torchvision")
        module, example = torchvision.models.resnet50().eval(), (torch.zeros(2, 3, 224, 224),)
        names, axes = ["x"], {"x": {0: "batch"}}
    file = io.BytesIO()
    torch.onnx.export(
        module, example, file, input_names=names, output_names=["y"], dynamic_axes=axes,
        opset_version=17, dynamo=False,
    )  # fmt: skip
    return file.getvalue()
