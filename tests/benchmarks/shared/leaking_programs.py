"""Programs whose memory grows from step to step at a planted line, and programs that do not leak.

``# %%`` is between cells; the last one is profiled. ``NEW(n)`` allocates n MB and ``USE(x)`` works
on an array. The line whose memory stays ends in ``# leaks``. At ``# padding`` stand some lines that
leak nothing. ``STEPS`` is the number of steps.
"""

from __future__ import annotations

from typing import NamedTuple

LEAKS = "# leaks"


class Program(NamedTuple):
    """Cells, and the text of the module ``MODULE`` that they import."""

    cells: str
    module: str = ""
    devices: tuple[str, ...] = ("cuda", "host")


_GRAPH = """
class Node:
    def __init__(self, value, inputs): self.value, self.inputs = value, inputs
"""
_NET = """
net = torch.nn.Sequential(
    torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)
).cuda()
data = torch.randn(512, 512, device="cuda")
"""

LEAKING = {
    "a list in the cell": Program("""
kept = []
# %%
for step in range(STEPS):
    # padding
    x = NEW(1)  # leaks
    USE(x)
    # padding
    kept.append(x)
"""),
    "a list of a function": Program("""
history = []
def step(batch):
    # padding
    out = NEW(1)  # leaks
    USE(out)
    history.append(out)
    # padding
def train():
    # padding
    for i in range(STEPS):
        # padding
        batch = NEW(3)
        USE(batch)
        step(batch)
# %%
train()
"""),
    "a list in another module": Program(
        """
import MODULE
# %%
for step in range(STEPS):
    # padding
    batch = NEW(2)
    USE(batch)
    MODULE.log(batch)
""",
        """
LIBRARY
LOGGED = []
# padding
def log(batch):
    # padding
    copy = NEW(1)  # leaks
    USE(copy)
    LOGGED.append(copy)
""",
    ),
    "a loop in another module": Program(
        """
import MODULE
# %%
MODULE.train()
""",
        """
LIBRARY
class Meter:
    def __init__(self): self.values = {}
    def update(self, step):
        # padding
        value = NEW(1)  # leaks
        USE(value)
        self.values[step] = value
def train():
    meter = Meter()
    # padding
    for i in range(STEPS):
        # padding
        x = NEW(4)
        USE(x)
        # padding
        meter.update(i)
    globals()["last"] = meter
""",
    ),
    "a closure": Program("""
def hooks():
    seen = []
    def hook():
        # padding
        output = NEW(1)  # leaks
        USE(output)
        seen.append(lambda: output)
    return hook
hook = hooks()
# %%
for step in range(STEPS):
    # padding
    y = NEW(2)
    USE(y)
    # padding
    hook()
"""),
    "a growing cache": Program("""
cache = {}
def lookup(key):
    # padding
    if key not in cache:
        cache[key] = NEW(1)  # leaks
    USE(cache[key])
    return cache[key]
# %%
for step in range(STEPS):
    # padding
    value = lookup(("length", step))
    other = NEW(1)
    USE(other)
"""),
    "a graph of nodes": Program(
        _GRAPH
        + """
losses = []
def forward(x):
    # padding
    hidden = NEW(1)  # leaks
    USE(hidden)
    return Node(None, (hidden,))
# %%
total = None
for step in range(STEPS):
    # padding
    batch = NEW(2)
    USE(batch)
    loss = forward(batch)
    losses.append(Node(loss, (total,)))
    # padding
"""
    ),
    "a chain of states": Program("""
state = None
# %%
for step in range(STEPS):
    # padding
    new = NEW(1)  # leaks
    USE(new)
    state = (new, state)
    # padding
"""),
    "the graph of a loss": Program(
        _NET
        + """
losses = []
# %%
for step in range(STEPS):
    # padding
    loss = net(data).pow(2).mean()  # leaks
    # padding
    losses.append(loss)
""",
        devices=("cuda",),
    ),
    "the graph of a loss in a function": Program(
        _NET
        + """
losses = []
optimizer = torch.optim.Adam(net.parameters())
def train_step():
    # padding
    out = net(data)
    with torch.enable_grad():
        loss = (net(out.detach()) * out.detach()).sum()  # leaks
    out.sum().backward()
    optimizer.step()
    # padding
    losses.append(loss)
def train():
    for i in range(STEPS):
        # padding
        train_step()
# %%
train()
""",
        devices=("cuda",),
    ),
}

CLEAN = {
    "a cache that fills": Program("""
cache = {}
# %%
for step in range(STEPS):
    # padding
    key = step % 12
    if key not in cache:
        cache[key] = NEW(2)
    USE(cache[key])
"""),
    "a cache that fills by chance": Program("""
import random
cache = {}
def lookup(key):
    if key not in cache:
        # padding
        cache[key] = NEW(2)
    USE(cache[key])
# %%
for step in range(STEPS):
    lookup(random.randrange(12))
    # padding
"""),
    "a warm-up": Program("""
kept = []
def warm(step):
    # padding
    if step < 6:
        kept.append(NEW(5))
    x = NEW(1)
    USE(x)
# %%
for step in range(STEPS):
    # padding
    warm(step)
"""),
    "a list of losses": Program("""
losses = []
# %%
for step in range(STEPS):
    # padding
    batch = NEW(3)
    USE(batch)
    loss = NEW(0.0004)
    USE(loss)
    losses.append(loss)
"""),
    "the state of an optimizer": Program("""
state = {}
def update(name):
    if name not in state:
        state[name] = NEW(4)
    # padding
    USE(state[name])
def train():
    for i in range(STEPS):
        # padding
        gradient = NEW(4)
        USE(gradient)
        for name in "abc":
            update(name)
# %%
train()
"""),
    "a buffer of the last ones": Program("""
from collections import deque
replay = deque(maxlen=8)
# %%
for step in range(STEPS):
    # padding
    x = NEW(1)
    USE(x)
    replay.append(x)
"""),
    "batches of any length": Program("""
import random
# %%
for step in range(STEPS):
    batch = NEW(random.uniform(1, 9))
    USE(batch)
    # padding
    hidden = NEW(random.uniform(1, 9))
    USE(hidden)
"""),
    "longer and longer batches": Program("""
def run(step):
    # padding
    batch = NEW(1 + 0.2 * step)
    USE(batch)
    return batch
# %%
for step in range(STEPS):
    # padding
    out = run(step)
"""),
    "a checkpoint now and then": Program(
        """
import MODULE
# %%
MODULE.train()
""",
        """
LIBRARY
import random
# padding
def train():
    best = None
    for i in range(STEPS):
        # padding
        x = NEW(2)
        USE(x)
        if random.random() < 0.2:
            best = NEW(5)
            USE(best)
""",
    ),
    "batches loaded ahead": Program("""
from collections import deque
queue = deque()
# %%
for step in range(STEPS):
    # padding
    while len(queue) < 4:
        queue.append(NEW(2))
    batch = queue.popleft()
    USE(batch)
"""),
    "a table that is filled": Program("""
tables = []
for _ in range(20):
    tables.append(NEW(2))
# %%
for step in range(STEPS):
    # padding
    USE(tables[step % 20])
    y = NEW(1)
    USE(y)
"""),
    "data loaded to the device": Program("""
pieces = []
# %%
for step in range(STEPS):
    pieces.append(LOAD(1))
    count = len(pieces)
"""),
    "training with Adam": Program(
        _NET
        + """
optimizer = torch.optim.Adam(net.parameters())
losses = []
# %%
for step in range(STEPS):
    # padding
    optimizer.zero_grad()
    loss = net(data).pow(2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
""",
        devices=("cuda",),
    ),
}
