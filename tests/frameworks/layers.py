"""Modules with work on the host device: a kernel with its own name forward, and one backward."""

from __future__ import annotations

import threading

import numpy as np
import torch
from torch import nn

import epprof_nb
from epprof_nb import host
from tests.helpers.threads import run_all


class Kernels:
    """Launches of kernels by name."""

    def __init__(self):
        self._array = host.to_device(np.ones(16, np.float32))
        self._made = {}

    def launch(self, name):
        if name not in self._made:

            def kernel(values, out):
                out[:] = values

            kernel.__name__ = name
            self._made[name] = kernel
        host.launch(self._made[name], self._array, self._array)


kernels = Kernels()


class _Work(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, name):
        ctx.name = name
        kernels.launch(f"{name} forward")
        return values * 1.0

    @staticmethod
    def backward(ctx, gradient):
        kernels.launch(f"{ctx.name} backward")
        return gradient * 1.0, None


def work(values, name):
    """Launch a kernel now, and one in the backward pass."""
    return _Work.apply(values, name)


class _Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, layer, depth, threads):
        ctx.nested = layer, depth, threads
        return values.clone()

    @staticmethod
    def backward(ctx, gradient):
        layer, depth, threads = ctx.nested
        threads.add(threading.get_native_id())
        with torch.enable_grad():
            inner = layer(torch.ones(2, 4, requires_grad=True))
            if depth:
                inner = _Nested.apply(inner, layer, depth - 1, threads)
            inner.sum().backward()
        return gradient, None, None, None


def nested(values, layer, depth):
    """Return values whose backward pass runs further passes of `layer`, and their threads."""
    threads = set()
    return _Nested.apply(values, layer, depth, threads), threads


class Layer(nn.Module):
    """A linear layer followed by kernels of the name `label`."""

    def __init__(self, label, size=4):
        super().__init__()
        self.label = label
        self.linear = nn.Linear(size, size)

    def forward(self, values):
        return work(self.linear(values), self.label)


def cpu_profiler(**options):
    """Return torch.profiler without CUPTI, which its first use keeps until the process ends."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    return torch.profiler.profile(activities=activities, **options)


def kernel_modules(profile):
    """{kernel or copy: set of the modules that it is attributed to}; None for no module."""
    frame = profile.joined()
    frame = frame[frame["kind"] != "synchronization"]  # only if the host was faster
    found = {}
    for name, module in zip(frame["name"], frame["module"], strict=True):
        found.setdefault(name, set()).add(module if isinstance(module, str) else None)
    return found


def names_of(profile, op_type):
    """Names of the ops of a type, in the order in which they started."""
    ops = profile.ops
    return ops["name"][ops["op_type"] == op_type].astype(str).tolist()


def profile_of_two_threads(named, values):
    """Profile a pass of two models of 8 layers, forward and backward on a thread each."""
    models = [nn.Sequential(*(Layer(f"{i} {k}") for k in range(8))) for i in range(2)]
    named(first=models[0], second=models[1])
    both = threading.Barrier(2)

    def run(model):
        both.wait()
        loss = model(values).sum()
        both.wait()
        loss.backward()
        both.wait()

    with epprof_nb.profile() as prof:
        run_all(threading.Thread(target=run, args=(model,)) for model in models)
    return prof
