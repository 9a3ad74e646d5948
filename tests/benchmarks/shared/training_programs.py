"""Training programs of users: in a cell, in a module file, and in transformers' Trainer."""

from __future__ import annotations

import linecache
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CELL = """
class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)

    def forward(self, values):
        parts = self.qkv(values).unflatten(-1, (3, self.heads, -1)).movedim(2, 0)
        query, key, value = parts.transpose(2, 3)
        scores = query @ key.transpose(-1, -2) / key.shape[-1] ** 0.5
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
        attended = weights @ value
        return self.project(
            attended.transpose(1, 2)
            .flatten(2)
        )


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention = Attention(width, heads)
        self.wider, self.narrower = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, values):
        values = values + self.attention(self.norms[0](values))
        hidden = nn.functional.gelu(self.wider(self.norms[1](values)))
        return values + self.narrower(hidden)


class Gpt(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(1024, width), nn.Embedding(64, width)
        self.blocks = nn.ModuleList([Block(width, 4) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1024, bias=False)

    def forward(self, tokens):
        values = self.tokens(tokens)
        values = values + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            values = block(values)
        return self.head(self.norm(values))


model = Gpt(256, 4).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
batches = torch.randint(1024, (4, 8, 65))


def train(steps):
    for step in range(steps):
        batch = batches[step % 4].to(device)
        logits = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1),
            batch[:, 1:].flatten(),
        )
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return loss.item()
"""

MODULE = '''
"""Training of a classifier."""

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)

    def forward(self, values):
        changed = self.first(values)
        changed = torch.relu(self.norm(changed))
        return values + self.second(changed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 7, stride=2, padding=3)
        self.trunk = nn.Sequential(*(Residual(64) for _ in range(6)))
        self.first = nn.Linear(64, 64)
        self.second = nn.Linear(64, 10)

    def forward(self, images):
        values = nn.functional.max_pool2d(self.stem(images), 2)
        values = self.trunk(values)
        features = values.mean((2, 3))
        hidden = self.first(features).sigmoid() * features.square().mean()
        return self.second(hidden)


class Training:
    def __init__(self, device):
        self.device = device
        self.net = Net().to(device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.01, momentum=0.9)
        self.images, self.labels = torch.randn(8, 3, 64, 64), torch.randint(10, (8,))

    def step(self):
        images = self.images.to(self.device)
        labels = self.labels.to(self.device)
        with torch.autocast(self.device, torch.bfloat16):
            logits = self.net(images)
            loss = nn.functional.cross_entropy(logits, labels)
            loss = loss + 0.01 * logits.float().square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def run(self, steps):
        return [self.step() for _ in range(steps)]
'''

TRAINER = '''
"""Fine-tuning with transformers."""

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Scored(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = {"n_layer": 4, "n_embd": 256, "n_head": 4, "vocab_size": 1024, "n_positions": 64}
        tokens = {"bos_token_id": 0, "eos_token_id": 0}
        self.model = GPT2LMHeadModel(GPT2Config(**sizes, **tokens))
        self.scale = nn.Linear(1024, 1)

    def forward(self, input_ids, labels=None):
        output = self.model(input_ids=input_ids, labels=labels)
        score = self.scale(output.logits).tanh().mean()
        return {"loss": output.loss + 0.01 * score, "logits": output.logits}


class Mine(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        loss = outputs["loss"] * 1.0
        return (loss, outputs) if return_outputs else loss


def fine_tune(folder, device, steps):
    tokens = torch.randint(1024, (8 * steps, 64))
    data = [{"input_ids": row, "labels": row} for row in tokens]
    arguments = TrainingArguments(
        output_dir=folder, max_steps=steps, per_device_train_batch_size=8, report_to=[],
        save_strategy="no", logging_strategy="no", disable_tqdm=True, use_cpu=device == "cpu",
        bf16=device != "cpu", dataloader_pin_memory=device != "cpu", remove_unused_columns=False,
    )
    trainer = Mine(Scored().to(device), arguments, train_dataset=data)
    trainer.train()
'''


class Program(NamedTuple):
    """A program of a user.

    Attributes
    ----------
    name
        Where its training loop is.
    files
        File names of the user's code, as in ``co_filename``.
    train
        Runs that many steps.
    """

    name: str
    files: frozenset[str]
    train: Callable[[int], object]


def in_a_cell(device: str) -> Program:
    """Return a language model whose training loop is a function of an earlier cell."""
    namespace: dict[str, Any] = {"torch": torch, "nn": nn, "device": device}
    defining, calling = "/tmp/ipykernel_1/3.py", "/tmp/ipykernel_1/5.py"
    _run_cell(CELL, defining, namespace)

    def train(steps: int) -> None:
        _run_cell(f"train({steps})\n", calling, namespace)

    return Program("def train() of another cell", frozenset((defining, calling)), train)


def in_a_module(device: str, folder: Path) -> Program:
    """Return a classifier whose training loop is a method in a module file."""
    file = folder / "classifier.py"
    training = _imported(file, MODULE)["Training"](device)
    return Program("module file", frozenset((str(file),)), training.run)


def in_a_trainer(device: str, folder: Path) -> Program:
    """Return a language model that transformers' Trainer trains."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    file = folder / "fine_tuning.py"
    fine_tune = _imported(file, TRAINER)["fine_tune"]
    return Program(
        "transformers' Trainer",
        frozenset((str(file),)),
        lambda steps: fine_tune(str(folder / "output"), device, steps),
    )


def _run_cell(text: str, file: str, namespace: dict[str, Any]) -> None:
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), namespace)


def _imported(file: Path, text: str) -> dict[str, Any]:
    """Write a module and return its names."""
    file.write_text(text, encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": file.stem}
    exec(compile(text, str(file), "exec"), namespace)
    return namespace
