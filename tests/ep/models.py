"""Small models as PyTorch exports them, with random weights (tests/tools/make_torch_models.py)."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import numpy_helper

from tests.paths import DATA

FOLDER = DATA / "models"
NAMES = ("bert", "gpt2", "resnet50", "mobilenet")


def load(name, kind=np.float32, *, seed=0):
    """Serialized model; random weights take the place of those that its file leaves out."""
    model = onnx.load(FOLDER / f"{name}.onnx")
    rng = np.random.default_rng(seed)
    for weight in model.graph.initializer:
        if weight.data_type == onnx.TensorProto.FLOAT and not weight.HasField("raw_data"):
            # Products keep the variance of their inputs.
            inputs = math.prod(weight.dims[1:]) if len(weight.dims) == 4 else weight.dims[0]
            values = rng.standard_normal(tuple(weight.dims)) * math.sqrt(1.5 / inputs)
            filled = numpy_helper.from_array(values.astype(np.float32), weight.name)
            weight.CopyFrom(filled)
    made = model.SerializeToString()
    return in_float16(made) if kind == np.float16 else made


def in_float16(serialized):
    """The model with weights, inputs and outputs of float16."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = onnx.load_from_string(serialized)
    return convert_float_to_float16(model, keep_io_types=False).SerializeToString()


def feeds(name, kind=np.float32, *, batch=2, length=8, past=3, size=64, seed=1):
    """Inputs of a model by name."""
    rng = np.random.default_rng(seed)
    if name == "bert":
        mask = np.ones((batch, length), np.int64)
        mask[-1, length // 2 :] = 0
        return {
            "input_ids": rng.integers(0, 100, (batch, length)),
            "attention_mask": mask,
            "token_type_ids": rng.integers(0, 2, (batch, length)),
        }
    if name == "gpt2":
        made = {"input_ids": rng.integers(0, 100, (batch, length))}
        for i in range(2):
            made[f"past_{i}"] = rng.standard_normal((2, batch, 4, past, 8)).astype(kind)
        return made
    return {"image": rng.standard_normal((batch, 3, size, size)).astype(kind)}
