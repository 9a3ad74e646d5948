"""Attribution of the activities of a PyTorch training loop and of CUDA graph replays.

Needs an NVIDIA GPU and PyTorch.
"""

from __future__ import annotations

import torch

import epprof_nb
from tests.benchmarks.shared.harness import header


def main() -> None:
    """Run the benchmark."""
    header(f"Attribution on {torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    torch.manual_seed(0)
    layers = [m for _ in range(6) for m in (torch.nn.Linear(1024, 1024), torch.nn.GELU())]
    net = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    x = torch.randn(256, 1024, device="cuda")

    def step() -> None:
        with epprof_nb.op("zero_grad"):
            optimizer.zero_grad(set_to_none=False)
        with epprof_nb.op("forward"):
            loss = (net(x) - x).square().mean()
        with epprof_nb.op("backward"):
            loss.backward()
        with epprof_nb.op("optimizer"):
            optimizer.step()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    with epprof_nb.profile() as prof:
        for i in range(20):
            with epprof_nb.op("step", i=i):
                step()
    print(f"training: {len(prof.activities):,} activities, {prof.info['attribution']}")
    print(prof.by_op()[["name", "count", "device_ns", "share", "kernels"]].to_string(), "\n")

    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.no_grad():
        with torch.cuda.stream(stream):
            for _ in range(3):
                net(x)
        torch.cuda.synchronize()
        with epprof_nb.profile(), torch.cuda.graph(graph):
            y = x
            for i, layer in enumerate(net):
                with epprof_nb.op(f"layer {i}"):
                    y = layer(y)
    with epprof_nb.profile() as prof, epprof_nb.op("replays"):
        for _ in range(50):
            graph.replay()
    nodes = prof.activities[prof.activities["graph_id"].notna()]
    known = int(nodes["capture_op_id"].notna().sum())
    print(f"graph: {len(nodes):,} activities of replays, {known:,} with the op that captured them")


if __name__ == "__main__":
    main()
