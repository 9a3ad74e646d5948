"""Work of transformers: a training step and a generation of GPT-2 with random weights."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import torch
from transformers import GPT2Config, GPT2LMHeadModel

if TYPE_CHECKING:
    from collections.abc import Callable

logging.getLogger("transformers").setLevel(logging.ERROR)


def gpt2(device: str, *, small: bool = False) -> GPT2LMHeadModel:
    """Return GPT-2, 124 million parameters; `small` selects two narrow layers."""
    torch.manual_seed(0)
    sizes = {"n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 1024} if small else {}
    tokens = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    return GPT2LMHeadModel(GPT2Config(**sizes, **tokens)).to(device)


def training_step(
    model: GPT2LMHeadModel, device: str, *, batch: int = 4, length: int = 128
) -> Callable[[], object]:
    """Return a function that makes a training step in mixed precision."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(model.config.vocab_size, (batch, length))

    def step() -> object:
        inputs = tokens.to(device)
        with torch.autocast(device, torch.bfloat16):
            loss = model(input_ids=inputs, labels=inputs).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def generation(model: GPT2LMHeadModel, device: str, *, tokens: int) -> Callable[[], object]:
    """Return a function that generates some tokens after a prompt of 32."""
    model.eval()
    prompt = torch.randint(1, model.config.vocab_size, (1, 32), device=device)
    mask = torch.ones_like(prompt)
    lengths = {"max_new_tokens": tokens, "min_new_tokens": tokens}

    def generate() -> object:
        return model.generate(prompt, attention_mask=mask, do_sample=False, **lengths)

    return generate


def seconds(run: Callable[[], object], device: str) -> float:
    """Return the time of a run with its work on the GPU."""
    if device == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    run()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin
