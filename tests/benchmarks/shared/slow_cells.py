# ruff: noqa: E501
"""Fourteen slow cells with their cures, for the benchmark of findings. They stay as they are.

Each program is (name, slow cell, cured cell, cause). A finding names the cause if its kind, place and remedy are those of the cure; a line whose text happens to have
the word does not count. ``SETUP`` runs once in an earlier cell. Written for torch on one GPU; sizes
give 5 to 100 ms a cell on an H200. ``as_function`` puts a cell into a function, to be defined in one cell and called in another.
"""

SETUP = """
import gc, threading, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np, torch
torch.manual_seed(0); torch.set_float32_matmul_precision("high")
def mlp(width, depth): return torch.nn.Sequential(*[m for _ in range(depth) for m in (torch.nn.Linear(width, width), torch.nn.ReLU())]).cuda()
small, big = mlp(1024, 12), mlp(4096, 4)
x, X = torch.randn(256, 1024, device="cuda"), torch.randn(1024, 4096, device="cuda")
loop_opt = torch.optim.AdamW(small.parameters(), lr=1e-5, foreach=False); fused_opt = torch.optim.AdamW(small.parameters(), lr=1e-5, fused=True); big_opt = torch.optim.SGD(big.parameters(), lr=1e-6)
batches = [torch.randn(256, 1024) for _ in range(8)]; large = [torch.randn(2048, 4096) for _ in range(6)]; pinned = [b.pin_memory() for b in large]
y64, table = X.double(), torch.randn(4096, 4096); table_gpu = table.cuda(); buffer = torch.empty(1024, 4096, pin_memory=True); staging = torch.empty(1024, 4096, device="cuda")
rows, runtime = torch.randn(1024, 4096), torch.cuda.cudart()
def sort(b): return torch.from_numpy(np.sort(b.numpy(), axis=1)[:, ::-1].copy())
def tiny(v, n=300):
    for _ in range(n): v = v * 1.0001
    return v
with torch.no_grad():
    graph = torch.cuda.CUDAGraph(); side = torch.cuda.Stream(); side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side): tiny(x)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph): tiny(x)
def objects(n): return [{"step": i, "values": [i, {"next": [i]}]} for i in range(n)]
kept = objects(30000)
torch.cuda.synchronize()
"""

_END = "\ntorch.cuda.synchronize()"

PROGRAMS = [
    (
        "loss read each step",
        "total = 0\nfor i in range(8):\n    loss = big(X).square().mean()\n    loss.backward()\n    big_opt.step(); big_opt.zero_grad()\n    total += loss.item()\n    sort(batches[0])",
        "total = 0\nfor i in range(8):\n    loss = big(X).square().mean()\n    loss.backward()\n    big_opt.step(); big_opt.zero_grad()\n    total += loss.detach()\n    sort(batches[0])",
        "line 6 waits for each loss, so the host work after it does not overlap",
    ),
    (
        "optimizer tensor by tensor",
        "for i in range(8):\n    small(x).square().mean().backward()\n    loop_opt.step(); loop_opt.zero_grad()",
        "for i in range(8):\n    small(x).square().mean().backward()\n    fused_opt.step(); fused_opt.zero_grad()",
        "hundreds of small kernels by an optimizer that goes tensor by tensor: foreach or fused",
    ),
    (
        "host work between batches",
        "for b in batches:\n    h = sort(b)\n    z = h.cuda()\n    for _ in range(2): big(X)",
        "with ThreadPoolExecutor(2) as pool:\n    for h in pool.map(sort, batches):\n        z = h.cuda()\n        for _ in range(2): big(X)",
        "the host sorts while the GPU idles: another thread",
    ),
    (
        "copies of pageable memory",
        "for b in large:\n    big(b.to('cuda'))",
        "for b in pinned:\n    big(b.to('cuda', non_blocking=True))",
        "pageable copies: pinned memory",
    ),
    ("many tiny kernels", "y = tiny(x)", "graph.replay()", "launches: a graph, or fewer kernels"),
    (
        "a scalar checked each time",
        "y = x\nfor i in range(150):\n    if y[0, 0] > 1e9: break\n    y = y * 1.0001",
        "y = x\nfor i in range(150):\n    y = y * 1.0001",
        "line 4 waits for one value each time",
    ),
    (
        "cache emptied each step",
        "for i in range(8):\n    z = big(torch.randn(1024, 4096, device='cuda'))\n    del z; torch.cuda.empty_cache()",
        "for i in range(8):\n    z = big(torch.randn(1024, 4096, device='cuda'))\n    del z",
        "the driver frees and allocates memory each step",
    ),
    (
        "to the CPU and back",
        "for i in range(6):\n    z = big(X)\n    w = torch.from_numpy(np.tanh(z.detach().cpu().numpy())).cuda()\n    big(w)",
        "for i in range(6):\n    z = big(X)\n    w = torch.tanh(z.detach())\n    big(w)",
        "waits and pageable copies of a round trip through the CPU",
    ),
    (
        "a mask that waits",
        "for i in range(40):\n    p = x[x > 0].sum()\n    small[0](x)",
        "for i in range(40):\n    p = torch.where(x > 0, x, 0).sum()\n    small[0](x)",
        "boolean indexing waits for the number of elements",
    ),
    (
        "the same table copied each step",
        "for i in range(6):\n    t = table.cuda()\n    big[0](t)",
        "t = table_gpu\nfor i in range(6):\n    big[0](t)",
        "the same contents are copied each step",
    ),
    (
        "double precision by accident",
        "w64 = big[0].weight.double()\nfor i in range(3): y64 @ w64",
        "w32 = big[0].weight\nfor i in range(3): X @ w32",
        "float64",
    ),
    (
        "memory registered each step",
        "for i in range(6):\n    runtime.cudaHostRegister(rows.data_ptr(), rows.nbytes, 0)\n    staging.copy_(rows, non_blocking=True)\n    big(staging)\n    torch.cuda.current_stream().synchronize()\n    runtime.cudaHostUnregister(rows.data_ptr())",
        "for i in range(6):\n    staging.copy_(buffer, non_blocking=True)\n    big(staging)",
        "registering memory each step",
    ),
    (
        "garbage collection each step",
        "for i in range(6):\n    gc.collect()\n    big(X)",
        "for i in range(6):\n    big(X)",
        "garbage collection each step",
    ),
    (
        "a synchronization each layer",
        "for i in range(10):\n    z = x\n    for layer in small:\n        z = layer(z)\n        torch.cuda.synchronize()",
        "for i in range(10):\n    z = x\n    for layer in small:\n        z = layer(z)",
        "a wait after each layer",
    ),
]
PROGRAMS = [(name, slow + _END, cured + _END, cause) for name, slow, cured, cause in PROGRAMS]


def as_function(cell, name="run"):
    """Return the source of a function whose body is a cell."""
    body = "".join(f"    {line}\n" for line in cell.splitlines())
    return f"def {name}():\n{body}"
