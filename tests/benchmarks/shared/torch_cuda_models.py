"""Training steps on a GPU: a model like GPT-2 and one like ResNet-50, in mixed precision."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from tests.tools.resnet import resnet50

if TYPE_CHECKING:
    from collections.abc import Callable

VOCABULARY = 50_304


class Attention(nn.Module):
    """Causal attention."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the attention over the values."""
        parts = self.qkv(values).unflatten(-1, (3, self.heads, -1)).movedim(2, 0)
        query, key, value = parts.transpose(2, 3)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.project(attended.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and a multilayer perceptron, each added to its input."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the values plus the outputs of the block."""
        values = values + self.attention(self.norm1(values))
        return values + self.mlp(self.norm2(values))


class Gpt(nn.Module):
    """A language model."""

    def __init__(
        self, width: int = 768, layers: int = 12, heads: int = 12, vocabulary: int = VOCABULARY
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(1024, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits of the next token at each position."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        values = self.tokens(tokens) + self.positions(positions)
        return self.head(self.norm(self.blocks(values)))


class Training:
    """A model with its optimizer and a batch that is copied to the GPU in each step.

    The statements of a step are also `CELL`, for a notebook.
    """

    CELL = """
for step in range(training.count):
    batch, targets = training.batch.to("cuda"), training.targets.to("cuda")
    with torch.autocast("cuda", torch.bfloat16):
        logits = training.model(batch)
        loss = training.loss(logits, targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(training.parameters, 1.0)
    training.optimizer.step()
    training.optimizer.zero_grad()
"""

    def __init__(self, model: nn.Module, batch: torch.Tensor, targets: torch.Tensor) -> None:
        self.model: Callable[[torch.Tensor], torch.Tensor] = model.cuda()
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.AdamW(self.parameters, lr=1e-4)
        self.batch, self.targets = batch, targets
        self.count = 5

    def loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        return functional.cross_entropy(logits.flatten(0, -2), targets.flatten())

    def steps(self, count: int) -> float:
        """Run some steps and return the seconds of one, with the work on the GPU."""
        torch.cuda.synchronize()
        begin = time.perf_counter()
        namespace: dict[str, Any] = {"training": self, "torch": torch}
        self.count = count
        exec(_CODE, namespace)
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / count


_CODE = compile(Training.CELL, "<training step>", "exec")


def gpt(layers: int, batch: int, length: int) -> Training:
    """Return the training of a language model."""
    torch.manual_seed(0)
    tokens = torch.randint(VOCABULARY, (batch, length + 1))
    return Training(Gpt(layers=layers), tokens[:, :-1], tokens[:, 1:])


def resnet(images: int) -> Training:
    """Return the training of a classifier of images."""
    torch.manual_seed(0)
    labels = torch.randint(1000, (images,))
    return Training(resnet50(), torch.randn(images, 3, 224, 224), labels)
