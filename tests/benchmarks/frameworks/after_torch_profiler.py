"""Overhead and attribution of a training step, before and after torch.profiler has run.

Needs an NVIDIA GPU and PyTorch.
"""

from __future__ import annotations

import time

import torch
from torch.profiler import ProfilerActivity

import epprof_nb
from tests.benchmarks.shared.harness import header, paired, show

STEPS, LAYERS, ROUNDS = 20, 12, 7


def main() -> None:
    """Run the benchmark."""
    header(f"{STEPS} training steps on {torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    torch.manual_seed(0)
    layers = [m for _ in range(LAYERS) for m in (torch.nn.Linear(512, 512), torch.nn.GELU())]
    net = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), foreach=False)
    x = torch.randn(64, 512, device="cuda")

    def steps() -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(STEPS):
            with epprof_nb.op("zero_grad"):
                optimizer.zero_grad(set_to_none=False)
            with epprof_nb.op("forward"):
                loss = (net(x) - x).square().mean()
            with epprof_nb.op("backward"):
                loss.backward()
            with epprof_nb.op("optimizer"):
                optimizer.step()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    found: dict[str, int] = {}

    def profiled() -> float:
        with epprof_nb.profile() as prof:
            seconds = steps()
        found.update(prof.info["attribution"])
        return seconds

    def compare(title: str) -> None:
        for body in (steps, profiled):
            body()
        print(title)
        variants = {"steps": steps, "epprof_nb": profiled}
        show(paired(variants, ROUNDS), ("steps",), "ms a step", 1e3 / STEPS)
        print(f"activities by attribution: {found}\n")

    compare("before torch.profiler")
    with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]):
        steps()
    compare("after torch.profiler")


if __name__ == "__main__":
    main()
