"""Time that notebook cells say profiling added, against interleaved measurements.

::

    python -m tests.benchmarks.added_time [--rounds 20] [--gpu] [--others] [--notebooks NAME]

Each round times ten runs of a program without a profiler (one of those of ``--notebooks``, whose
state of the garbage collector matters), then runs two profiled cells of it: one
with five warm-ups and five repeats, which measures what profiling adds, and one without, which
estimates it. The truth is the median over the rounds of the ratio of the two times, of each of the
cells. What a cell says is right if it differs from the truth by at most 30 % of it, or two points.
An estimate of "at least" some share is right if the truth is not below it. Repeats that vary too
much say nothing. ``--others`` runs other programs: the factors of the estimate were fitted to the
first ones. ``--notebooks`` runs programs of a file in ``tests/benchmarks/notebooks``, which says
what was fitted to them. ``--gpu`` adds programs on an NVIDIA GPU, ``--estimates`` leaves out the
cells that measure.

On a host that other processes use, ``--processor`` takes the processor time of the process for the
truth, and for the estimate, and takes no samples, which another thread does.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from epprof_nb.analysis.added_time.added_time import AddedTime
from tests.benchmarks.shared.harness import header
from tests.benchmarks.shared.notebook_programs import NAMES, programs_of

if TYPE_CHECKING:
    from collections.abc import Callable

TOLERANCE, POINTS = 0.3, 0.02
_WARMUPS, _REPEATS = 5, 5
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
OTHER_SETUP = """
import epprof_nb
mlp = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
mlp_adam, batch = torch.optim.Adam(mlp.parameters(), lr=1e-6), torch.randn(32, 64)
cnn = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
cnn_sgd, pictures = torch.optim.SGD(cnn.parameters(), lr=1e-6), torch.randn(8, 3, 24, 24)
lstm, letter = nn.LSTMCell(32, 32), torch.randn(1, 32)
norms = nn.Sequential(*(nn.LayerNorm(64) for _ in range(10)))
weight = torch.randn(64, 64, requires_grad=True)
vector, buffer = arrays[0, 0].copy(), np.zeros(1024)
attention = nn.MultiheadAttention(64, 4, batch_first=True)
attention_sgd = torch.optim.SGD(attention.parameters(), lr=1e-6)
embedding, words = nn.Embedding(1000, 32), torch.randint(1000, (16, 12))
head = nn.Linear(32, 8)
rows = torch.utils.data.TensorDataset(torch.randn(512, 64))
loader = torch.utils.data.DataLoader(rows, batch_size=16)
class Block(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.inner = Block(depth - 1) if depth else nn.Linear(64, 64)
    def forward(self, x): return self.inner(x) + x
nested, second, other = Block(8), host.Stream(), host.to_device(np.zeros(4))
def smooth(values, window):
    out = []
    for i in range(len(values)):
        low = max(i - window, 0)
        out.append(sum(values[low:i + 1]) / (i + 1 - low))
    return out
coder = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 64), nn.Sigmoid())
coder_adam = torch.optim.AdamW(coder.parameters(), lr=1e-6)
"""
OTHER_PROGRAMS = {
    "training an MLP": """for i in range(20):
    mlp(batch).mean().backward()
    mlp_adam.step()
    mlp_adam.zero_grad()""",
    "training a CNN": """for i in range(10):
    cnn(pictures).sum().backward()
    cnn_sgd.step()
    cnn_sgd.zero_grad()""",
    "an LSTM, letter by letter": """with torch.no_grad():
    state = None
    for i in range(100): state = lstm(letter, state)""",
    "layer norms": "with torch.no_grad():\n    for i in range(20): out = norms(batch)",
    "autograd alone": """for i in range(30):
    out = batch
    for _ in range(10): out = torch.tanh(out @ weight)
    out.sum().backward()
    weight.grad = None""",
    "statements": """for i in range(2000):
    a = i * 2
    b = a + 1
    c = [a, b]""",
    "named sorts": """for i in range(1000):
    with epprof_nb.op("sort"):
        np.sort(vector)""",
    "named sums": """for i in range(3000):
    with epprof_nb.op("add"):
        buffer[:] += 1""",
    "copies": "for i in range(150): host.to_host(host.to_device(buffer))",
    "queued kernels": "for i in range(300): host.launch(np.add, total, 1.0)\nhost.synchronize()",
    "attention": """for i in range(15):
    attention(sentences, sentences, sentences)[0].sum().backward()
    attention_sgd.step()
    attention_sgd.zero_grad()""",
    "embeddings of words": """with torch.no_grad():
    for i in range(150): head(embedding(words)).argmax(-1)""",
    "a data loader": "with torch.no_grad():\n    for (row,) in loader: mlp(row)",
    "nested modules": "with torch.no_grad():\n    for i in range(40): nested(batch)",
    "two streams": """for i in range(150):
    host.launch(np.add, total, 1.0)
    host.launch(np.add, other, 1.0, stream=second)
host.synchronize()""",
    "a function of loops": "for i in range(3): smooth(list(range(400)), 20)",
    "an autoencoder": """for i in range(25):
    (coder(batch) - batch).square().mean().backward()
    coder_adam.step()
    coder_adam.zero_grad()""",
    "named steps": """for i in range(60):
    with epprof_nb.op("forward"): out = mlp(batch)
    with epprof_nb.op("loss"): loss = out.square().mean()
    with epprof_nb.op("backward"): loss.backward()""",
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
    parser.add_argument("--others", action="store_true", help="other programs")
    parser.add_argument("--notebooks", choices=NAMES, help="programs of notebooks")
    parser.add_argument("--estimates", action="store_true", help="no cells with repeats")
    parser.add_argument("--processor", action="store_true", help="times of the processor")
    given = parser.parse_args()
    header("What cells say that profiling added")
    config = Config({"HistoryManager": {"hist_file": ":memory:"}})
    shell = InteractiveShell.instance(config=config)
    shell.run_line_magic("load_ext", "epprof_nb")
    shell.run_line_magic("config", "GpuProfile.calibrate = False")
    shell.run_cell(SETUP).raise_error()
    programs = PROGRAMS
    if given.others:
        shell.run_cell(OTHER_SETUP).raise_error()
        programs = OTHER_PROGRAMS
    setups, runs = {}, 10
    if given.notebooks:
        found = programs_of(given.notebooks)
        setups = {name: setup for name, (setup, _) in found.items()}
        programs = {name: cell for name, (_, cell) in found.items()}
        runs = 1
    if given.gpu:
        shell.run_cell(GPU_SETUP).raise_error()
        programs = programs | GPU_PROGRAMS
    clock = time.process_time if given.processor else time.perf_counter
    kinds = [Cell("--no-samples" if given.processor else "", clock, estimates=True)]
    if not given.processor and not given.estimates:
        kinds.insert(0, Cell(f"--warmup {_WARMUPS} --repeat {_REPEATS}", clock, estimates=False))
    print(f"{'program':26} {'one run':>10} {'truth':>8} {'error':>7} {'median said':>12}  cells")
    right: dict[str, list[bool]] = {cell.options: [] for cell in kinds}
    for name, program in programs.items():
        shell.run_cell(setups.get(name, "")).raise_error()
        rounds = measured(program, shell, given.rounds, kinds, runs)
        for cell in kinds:
            right[cell.options].append(show(name, cell, rounds[cell.options]))
    for options, found in right.items():
        print(f"{sum(found)} of {len(found)} programs: the median of cells {options!r} is right")


class Cell(NamedTuple):
    """A kind of cell: its options, the clock of the truth, and whether it estimates the time."""

    options: str
    clock: Callable[[], float]
    estimates: bool


class Round(NamedTuple):
    """Times of a run without the profiler and of the cell, s, and what the cell said was added.

    ``is_least`` is whether it said "at least".
    """

    plain: float
    profiled: float
    said: float | None
    is_least: bool = False


def measured(
    program: str, shell: Any, rounds: int, cells: list[Cell], runs: int
) -> dict[str, list[Round]]:
    """Return the rounds of each kind of cell."""
    found: dict[str, list[Round]] = {cell.options: [] for cell in cells}
    for _ in range(rounds):
        for cell in cells:
            found[cell.options].append(one_round(program, cell, shell, runs))
    return found


def one_round(program: str, cell: Cell, shell: Any, runs: int) -> Round:
    """Run the program alone, then the profiled cell, each after another run."""
    shell.user_ns["_clock"] = cell.clock
    plain = seconds(program, shell, runs)
    exec(program, shell.user_ns)
    timed = f"_begin = _clock()\n{program}\n_end = _clock()" if cell.estimates else program
    shell.run_cell(f"%%gpuprofile -q {cell.options} prof\n{timed}").raise_error()
    info = shell.user_ns["prof"].info
    added = info.get("added_ns") or {}
    total = added.get("total")
    if not cell.estimates:
        repeats = info.get("repeats") or [[0, info["wall_ns"]]]
        profiled = statistics.mean(end - begin for begin, end in repeats) / 1e9
        said = None if total is None else total / (info["wall_ns"] - total)
        return Round(plain, profiled, said if not added.get("estimated") else None)
    profiled = shell.user_ns["_end"] - shell.user_ns["_begin"]
    if total is None:
        return Round(plain, profiled, None)
    whole = info["wall_ns"]
    if cell.clock is time.process_time:
        total, whole = sum(added["of_threads"].values()), round(profiled * 1e9)
    found = AddedTime(min(total, whole - 1), whole, is_measured=False)
    return Round(plain, profiled, found.stated_share(), found.is_least)


def show(name: str, cell: Cell, rounds: list[Round]) -> bool:
    """Print the truth, and how many cells said what; return whether their median is right."""
    ratios = [one.profiled / one.plain - 1 for one in rounds]
    truth = statistics.median(ratios)
    deviation = 1.4826 * statistics.median(abs(ratio - truth) for ratio in ratios)
    told = [(one.said, one.is_least) for one in rounds if one.said is not None]

    def is_right(share: float, is_least: bool) -> bool:
        return abs(share - truth) <= max(TOLERANCE * abs(truth), POINTS) or (
            is_least and share <= truth
        )

    right = sum(is_right(*one) for one in told)
    middle = sorted(told)[len(told) // 2] if told else None
    said = f"{'>' * middle[1]}{middle[0]:.1%}" if middle else "nothing"
    verb = "estimate" if cell.estimates else "measure"
    print(
        f"{name:26} {statistics.median(one.plain for one in rounds) * 1e3:7.2f} ms {truth:8.1%} "
        f"{1.2533 * deviation / math.sqrt(len(rounds)):7.1%} {said:>12}  "
        f"{len(told)} of {len(rounds)} {verb} it, {right} of these are right",
        flush=True,
    )
    return middle is not None and is_right(*middle)


def seconds(program: str, shell: Any, runs: int) -> float:
    """Return the mean time of one run, in a cell.

    What IPython does before a cell leaves caches cold: without it, cells of 20 ms are up to 6 %
    faster. As in a profiled cell, the interpreter compiles the code as a whole and has not
    optimized it.
    """
    space = shell.user_ns
    first, *codes = (compile(program, "program", "exec") for _ in range(1 + runs))
    exec(first, space)
    space["_codes"] = codes
    timed = "_begin = _clock()\nfor _code in _codes: exec(_code)\n_end = _clock()"
    shell.run_cell(timed).raise_error()
    return float(space["_end"] - space["_begin"]) / runs


if __name__ == "__main__":
    main()
