"""Programs that run out of memory at a planted line, for the benchmark of their explanations."""

from __future__ import annotations

from typing import NamedTuple

ASKS = "# asks"
"""End of the line that fails."""


class Program(NamedTuple):
    """A program: cells, the name of its greatest holder, and a module that it imports.

    ``# %%`` is between cells. ``NEW(n)@`` allocates n MB. The line that fails ends in ``# asks``;
    at ``# padding`` stand some lines without effect.
    """

    cells: str
    holder: str
    module: str = ""
    only_cuda: bool = False
    check: str = ""


MODEL = """\
import torch
class Net(torch.nn.Module):
    def __init__(self, width=4096, depth=6):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(depth))
    def forward(self, x):
        # padding
        for layer in self.layers:
            x = torch.relu(layer(x))@ASKS@
        return x
net = Net().cuda()
"""


PROGRAMS = {
    "a global list": Program(
        """
cache = []
# %%
# padding
while True:
    # padding
    cache.append(NEW(30)@)  # asks
""",
        "`cache`",
    ),
    "a function that calls itself": Program(
        """
def layer():
    # padding
    h = NEW(80)@  # asks
    return layer(), h
# %%
layer()
""",
        "`h` in `layer`",
    ),
    "a module": Program(
        """
import planted
# %%
# padding
planted.fill()
""",
        "`STORE` in `",
        module="""
@HOST@
STORE = {}
# padding
def fill():
    # padding
    for i in range(1000):
        STORE[i] = NEW(25)@  # asks
""",
    ),
    "a class of a module": Program(
        """
import planted
model = planted.Model()
# %%
# padding
for i in range(1000):
    # padding
    model.forward(i)
""",
        "`Model.cache` in `planted.py`",
        module="""
@HOST@
class Model:
    cache = {}
    # padding
    def forward(self, i):
        # padding
        Model.cache[i] = NEW(25)@  # asks
""",
    ),
    "a column of objects": Program(
        """
import pandas
# padding
table = pandas.DataFrame({"text": ["a"] * 100, "embedding": [None] * 100})
for i in range(12):
    # padding
    table.at[i, "embedding"] = NEW(30)@
# %%
# padding
late = NEW(60)@  # asks
""",
        "`table`",
    ),
    "a closure": Program(
        """
def make():
    data = [NEW(50)@ for _ in range(6)]
    # padding
    def step(): return len(data)
    return step
step = make()
# %%
# padding
x = NEW(90)@
y = NEW(90)@  # asks
""",
        "`data` in the closure of `step`",
    ),
    "an output": Program(
        """
NEW(300)@
# %%
1 + 1
# %%
2 + 2
# %%
3 + 3
# %%
# padding
x = NEW(150)@  # asks
""",
        "`Out[2]`",
    ),
    "an attribute": Program(
        """
class Trainer:
    def __init__(self):
        self.buffers, self.step = [], NEW(40)@
    # padding
    def grow(self):
        # padding
        while True:
            self.buffers.append(NEW(40)@)  # asks
# %%
trainer = Trainer()
# padding
trainer.grow()
""",
        "`trainer.buffers`",
    ),
    "caught and tried again": Program(
        """
store = [NEW(200)@]
# %%
# padding
size, batch = 1600, None
while size > 300:
    try:
        batch = NEW(size)@
    except (MemoryError, RuntimeError):
        size //= 2
# padding
batch = NEW(201)@  # asks
""",
        "`store`",
    ),
    "raised from": Program(
        """
# padding
states = [NEW(120)@, NEW(120)@, NEW(40)@]
# %%
def load():
    # padding
    return NEW(170)@  # asks
try:
    load()
except Exception as error:
    raise ValueError('the model cannot be loaded') from error
""",
        "`states`",
    ),
    "a group": Program(
        """
weights = {'a': NEW(300)@}
# %%
# padding
failed = []
for size in (170, 180):
    try:
        NEW(size)@  # asks
    except Exception as error:
        failed.append(error)
# padding
raise ExceptionGroup('loads', failed)
""",
        "`weights`",
    ),
    "a thread": Program(
        """
from concurrent.futures import ThreadPoolExecutor
kept = [NEW(100)@ for _ in range(3)]
# %%
def work(size):
    # padding
    mine = NEW(size)@  # asks
    return mine
# padding
with ThreadPoolExecutor(1) as pool:
    pool.submit(work, 250).result()
""",
        "`kept`",
    ),
    "a generator": Program(
        """
def batches():
    ready = [NEW(60)@ for _ in range(5)]
    # padding
    yield len(ready)
    yield ready
source = batches()
next(source)
# %%
# padding
NEW(180)@  # asks
""",
        "`source`",
    ),
    "an earlier error": Program(
        """
def layer():
    # padding
    h = NEW(80)@
    return layer(), h
# %%
layer()
# %%
# padding
NEW(200)@  # asks
""",
        "an earlier error",
    ),
    "a profiled cell": Program(
        """
tables = {}
# %%
%%gpuprofile -q prof
# padding
for i in range(1000):
    # padding
    tables[i] = NEW(35)@  # asks
""",
        "`tables`",
    ),
    "fragments": Program(
        """
many = [NEW(5)@ for _ in range(76 * SCALE)]
# padding
keep = many[::4]
del many
# %%
# padding
x = NEW(150)@  # asks
""",
        "`keep`",
        only_cuda=True,
        check="fragmented",
    ),
    "activations": Program(
        """
@MODEL THAT ASKS@
# %%
batch = torch.randn(40_000, 4096, device='cuda')
# padding
loss = net(batch).sum()
""",
        "saved for the backward pass",
        only_cuda=True,
    ),
    "losses that keep their graphs": Program(
        """
@MODEL@
# %%
losses = []
# padding
for step in range(1000):
    batch = torch.randn(2_000, 4096, device='cuda')
    # padding
    loss = net(batch).square()  # asks
    losses.append(loss.mean())
""",
        "`losses`, saved for the backward pass",
        only_cuda=True,
        check="in the model",
    ),
    "an optimizer's state": Program(
        """
@MODEL@
net = Net(depth=8).cuda()
opt = torch.optim.Adam(net.parameters())
net(torch.randn(64, 4096, device='cuda')).sum().backward()
opt.step()
# %%
# padding
opt.zero_grad()
x = torch.empty(2_000_000_000, device='cuda')  # asks
""",
        "`opt`, optimizer state",
        only_cuda=True,
    ),
    "CuPy": Program(
        """
import cupy
cupy.get_default_memory_pool().set_limit(size=4 * 10**9)
arrays = [cupy.zeros(10**8, 'f4') for _ in range(8)]
# %%
# padding
more = cupy.empty(3 * 10**8, 'f4')  # asks
""",
        "`arrays`",
        only_cuda=True,
    ),
    "CUDA error 2": Program(
        """
import cupy
first = cupy.ones(5 * 10**8, 'f4')
# %%
# padding
cupy.cuda.runtime.malloc(10**12)  # asks
""",
        "`first`",
        only_cuda=True,
    ),
    "JAX": Program(
        """
import os
os.environ['XLA_PYTHON_CLIENT_MEM_FRACTION'] = '0.05'
import jax, jax.numpy as jnp
tables = [jnp.zeros(2 * 10**8, 'float32') for _ in range(5)]
# %%
# padding
more = jnp.ones(2 * 10**9, 'float32').block_until_ready()  # asks
""",
        "`tables`",
        only_cuda=True,
    ),
    "a session of ONNX Runtime": Program(
        """
import numpy as np, onnxruntime as ort
from onnx import helper, TensorProto as T
io = lambda n: helper.make_tensor_value_info(n, T.FLOAT, ['n'])
nodes = [helper.make_node('Exp', ['x'], ['y']), helper.make_node('Neg', ['y'], ['z'])]
graph = helper.make_graph(nodes, 'g', [io('x')], [io('z')])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)])
model.ir_version = 8
if 'CUDAExecutionProvider' not in ort.get_available_providers():
    raise ModuleNotFoundError('onnxruntime-gpu')
cuda = ('CUDAExecutionProvider', {'gpu_mem_limit': 200_000_000})
session = ort.InferenceSession(model.SerializeToString(), providers=[cuda])
images = torch.empty(500_000_000, device='cuda')
batch = np.zeros(10**8, np.float32)
# %%
# padding
result = session.run(None, {'x': batch})  # asks
""",
        "`images`",
        only_cuda=True,
    ),
    "kernels in Python": Program(
        """
import numpy as np, epprof_nb.ep
from onnx import helper, TensorProto as T
x = helper.make_tensor_value_info('x', T.FLOAT, [1])
n = helper.make_tensor_value_info('n', T.INT64, [1])
y = helper.make_tensor_value_info('y', T.FLOAT, ['m'])
node = helper.make_node('Expand', ['x', 'n'], ['y'])
graph = helper.make_graph([node], 'g', [x, n], [y])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)])
model.ir_version = 8
session = epprof_nb.ep.session(model.SerializeToString(), device='cuda:0')
images = torch.empty(500_000_000, device='cuda')
# %%
# padding
x, n = np.ones(1, np.float32), np.array([10**11])
result = session.run(None, {'x': x, 'n': n})  # asks
""",
        "`images`",
        only_cuda=True,
    ),
}
