"""Time that notebook cells say profiling added, against interleaved measurements.

::

    python -m tests.benchmarks.added_time [--rounds 20] [--gpu]

Each round times ten runs of a program without a profiler, then runs a profiled cell of it: with
five warm-ups and five repeats. The truth is the median over the rounds of the ratio of the two.
What a cell says is right if it differs from the truth by at most 30 % of it, or two points. Cells
that vary too much say nothing. ``--gpu`` adds programs on an NVIDIA GPU.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from tests.benchmarks.shared.harness import header

if TYPE_CHECKING:
    from types import CodeType

TOLERANCE, POINTS = 0.3, 0.02
_RUNS, _WARMUPS, _REPEATS = 10, 5, 5
SETUP = """
import numpy as np, torch
from torch import nn
from epprof_nb import host
torch.manual_seed(0)
torch.set_num_threads(1)
encoder = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 3, enable_nested_tensor=False)
sentences = torch.randn(4, 24, 64)
gru, sequence = nn.GRU(64, 64), torch.randn(32, 8, 64)
gru_sgd = torch.optim.SGD(gru.parameters(), lr=1e-6)
towers = nn.ModuleList(nn.Sequential(nn.Linear(32, 32), nn.ReLU()) for _ in range(6))
features = torch.randn(256, 32)
class Launcher(nn.Module):
    def forward(self, array):
        for _ in range(20): host.launch(lambda *_: None, array)
        host.synchronize()
launcher, total = Launcher(), host.to_device(np.zeros(4))
arrays = np.random.default_rng(0).normal(size=(16, 8, 1024))
"""
PROGRAMS = {
    "a transformer's encoder": "for i in range(12): out = encoder(sentences)",
    "training a GRU": """for i in range(8):
    gru(sequence)[0].pow(2).mean().backward()
    gru_sgd.step()
    gru_sgd.zero_grad()""",
    "towers of a recommender": """for i in range(20):
    sum(tower(features).sum() for tower in towers).backward()""",
    "a loop in a module": "for i in range(60): launcher(total)",
    "a busy host": """for i in range(60):
    order = np.argsort(arrays[i % 16], axis=1)
    host.launch(lambda *_: None, total)
host.synchronize()""",
    "waits for short kernels": """for i in range(600):
    host.launch(lambda *_: None, total)
    host.synchronize()""",
}
GPU_SETUP = """
import copy
wait = torch.cuda.synchronize
x, y, big = torch.randn(32, 256).cuda(), torch.zeros(16).cuda(), torch.randn(4096, 4096).cuda()
small_encoder, tokens = copy.deepcopy(encoder).cuda(), sentences.cuda()
net = nn.Sequential(*(m for _ in range(30) for m in (nn.Linear(256, 256), nn.GELU()))).cuda()
adam = torch.optim.AdamW(net.parameters(), lr=1e-5)
one_by_one = torch.optim.SGD(net.parameters(), lr=1e-6, foreach=False)
convs = nn.Sequential(*(m for _ in range(12) for m in (nn.Conv2d(16, 16, 3), nn.ReLU()))).cuda()
images = torch.randn(8, 16, 64, 64).cuda()
cells, state = nn.GRUCell(256, 256).cuda(), torch.zeros(32, 256).cuda()
table = nn.EmbeddingBag(10_000, 64, mode="sum").cuda()
ids = torch.randint(10_000, (64, 20)).cuda()
side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
with torch.cuda.stream(side), torch.no_grad(): net(x)
wait()
with torch.cuda.graph(graph), torch.no_grad(): net(x)
pinned = torch.zeros(1024).pin_memory()
"""
GPU_PROGRAMS = {
    "short kernels": "for i in range(2000): y.add_(1)\nwait()",
    "short kernels, read": "for i in range(300): y.add_(1).sum().item()",
    "large products": "for i in range(20): z = big @ big\nwait()",
    "forward passes": "with torch.no_grad():\n    for i in range(10): net(x)\nwait()",
    "training steps": """for i in range(4):
    net(x).square().mean().backward()
    adam.step()
    adam.zero_grad()
wait()""",
    "an optimizer by tensor": """net(x).sum().backward()
for i in range(10): one_by_one.step()
wait()""",
    "an encoder": "for i in range(10): out = small_encoder(tokens)\nwait()",
    "convolutions": "for i in range(10): out = convs(images)\nwait()",
    "a recurrent loop": "for i in range(100): state = cells(x, state).detach()\nwait()",
    "embeddings": "for i in range(200): out = table(ids)\nwait()",
    "replays": "for i in range(100): graph.replay()\nwait()",
    "small copies": "for i in range(500): z = pinned.cuda(non_blocking=True)\nwait()",
    "named ranges": """import epprof_nb
for i in range(1000):
    with epprof_nb.op("step"):
        y.mul_(1)
wait()""",
    "a busy host beside a GPU": """for i in range(50):
    order = np.argsort(arrays[i % 16], axis=1)
    y.add_(float(order[0, 0]))
wait()""",
}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--gpu", action="store_true", help="programs on a GPU, too")
    given = parser.parse_args()
    header("What cells say that profiling added")
    config = Config({"HistoryManager": {"hist_file": ":memory:"}})
    shell = InteractiveShell.instance(config=config)
    shell.run_line_magic("load_ext", "epprof_nb")
    shell.run_line_magic("config", "GpuProfile.calibrate = False")
    shell.run_cell(SETUP).raise_error()
    programs = PROGRAMS
    if given.gpu:
        shell.run_cell(GPU_SETUP).raise_error()
        programs = PROGRAMS | GPU_PROGRAMS
    options = f"--warmup {_WARMUPS} --repeat {_REPEATS}"
    print(f"{'program':26} {'one run':>10} {'truth':>8} {'error':>7} {'median said':>12}  cells")
    right = [measure(name, programs[name], shell, given.rounds, options) for name in programs]
    print(f"{sum(right)} of {len(right)} programs: the median of what cells say is right")


def measure(name: str, program: str, shell: Any, rounds: int, options: str) -> bool:
    """Print the truth, and how many cells said what; return whether their median is right."""
    code = compile(program, "program", "exec")
    plain, ratios, said = [], [], []
    for _ in range(rounds):
        plain.append(seconds(code, shell.user_ns))
        shell.run_cell(f"%%gpuprofile -q {options} prof\n{program}").raise_error()
        info = shell.user_ns["prof"].info
        repeats = info.get("repeats") or [[0, info["wall_ns"]]]
        ratios.append(statistics.mean(end - begin for begin, end in repeats) / 1e9 / plain[-1])
        total = (info.get("added_ns") or {}).get("total")
        said.append(None if total is None else total / (info["wall_ns"] - total))
    truth = statistics.median(ratios) - 1
    deviation = 1.4826 * statistics.median(abs(ratio - 1 - truth) for ratio in ratios)
    told = [share for share in said if share is not None]

    def is_right(share: float) -> bool:
        return abs(share - truth) <= max(TOLERANCE * abs(truth), POINTS)

    right = sum(map(is_right, told))
    middle = f"{statistics.median(told):.1%}" if told else "nothing"
    print(
        f"{name:26} {statistics.median(plain) * 1e3:7.2f} ms {truth:8.1%} "
        f"{1.2533 * deviation / math.sqrt(rounds):7.1%} {middle:>12}  "
        f"{len(told)} of {rounds} say it, {right} of these are right",
        flush=True,
    )
    return bool(told) and is_right(statistics.median(told))


def seconds(code: CodeType, space: dict[str, Any]) -> float:
    """Return the mean time of one run."""
    exec(code, space)
    begin = time.perf_counter()
    for _ in range(_RUNS):
        exec(code, space)
    return (time.perf_counter() - begin) / _RUNS


if __name__ == "__main__":
    main()
