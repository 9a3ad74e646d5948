"""Programs as in notebooks, to which no factor of the estimate of added time was fitted."""

from __future__ import annotations

HELD_OUT: dict[str, tuple[str, str]] = {
    "json records": (
        """
import json
recs = [
    {'id': i, 'name': 'n%d' % i, 'tags': ['a', 'b', str(i)], 'pos': {'x': i, 'y': i / 3}}
    for i in range(4000)
]
lines = [json.dumps(r) for r in recs]
""",
        """
by_tag = {}
for line in lines:
    rec = json.loads(line)
    rec['area'] = rec['pos']['x'] * rec['pos']['y']
    for tag in rec['tags']:
        by_tag.setdefault(tag, []).append(rec['id'])
dump = json.dumps(by_tag)
""",
    ),
    "pandas columns": (
        """
import pandas as pd, numpy as np
d2 = pd.DataFrame({'g': np.random.randint(0, 5, 3000), 'v': np.random.rand(3000)})
""",
        """
for k in range(60):
    d2['z'] = (d2['v'] - d2['v'].mean()) / d2['v'].std()
    d2['r'] = d2['z'].rolling(5).mean()
    part = d2[d2['z'] > 1].reset_index(drop=True)
    m = part.groupby('g')['v'].agg(['mean', 'max'])
""",
    ),
    "pandas apply": (
        """
import pandas as pd, numpy as np
d3 = pd.DataFrame({'a': np.random.rand(3000), 'b': np.random.rand(3000)})
""",
        """
def score(row):
    if row['a'] > row['b']:
        return row['a'] - row['b']
    return row['b'] * 2
d3['s'] = d3.apply(score, axis=1)
d3['t'] = d3['s'].map(lambda x: round(x, 2))
""",
    ),
    "torch conv train": (
        """
import torch
from torch import nn
torch.set_num_threads(1)
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, padding=1); self.c2 = nn.Conv2d(8, 8, 3, padding=1)
        self.out = nn.Linear(8 * 49, 10)
    def forward(self, x):
        x = torch.relu(self.c1(x)); x = nn.functional.max_pool2d(x, 2)
        x = torch.relu(self.c2(x)); x = nn.functional.max_pool2d(x, 2)
        return self.out(x.flatten(1))
cnn = Small(); sgd = torch.optim.SGD(cnn.parameters(), lr=0.01, momentum=0.9)
imgs = torch.randn(128, 1, 28, 28); labels = torch.randint(0, 10, (128,))
""",
        """
for i in range(0, 128, 8):
    out = cnn(imgs[i:i+8])
    loss = nn.functional.cross_entropy(out, labels[i:i+8])
    sgd.zero_grad()
    loss.backward()
    sgd.step()
with torch.no_grad():
    acc = (cnn(imgs).argmax(1) == labels).float().mean().item()
""",
    ),
    "torch lstm": (
        """
import torch
from torch import nn
torch.set_num_threads(1)
cell = nn.LSTMCell(16, 32); head = nn.Linear(32, 16)
""",
        """
with torch.no_grad():
    x = torch.zeros(1, 16); h = torch.zeros(1, 32); c = torch.zeros(1, 32)
    outs = []
    for t in range(600):
        h, c = cell(x, (h, c))
        x = head(h)
        outs.append(x.argmax().item())
""",
    ),
    "torch elementwise": (
        """
import torch
torch.set_num_threads(1)
xs = torch.linspace(-2, 2, 200)
""",
        """
w = torch.zeros(3)
for it in range(700):
    pred = w[0] + w[1] * xs + w[2] * xs * xs
    err = pred - torch.sin(xs)
    g = torch.stack([err.mean(), (err * xs).mean(), (err * xs * xs).mean()])
    w -= 0.05 * g
""",
    ),
    "ort batches": (
        """
import onnxruntime as ort, numpy as np
from onnx import helper as h, TensorProto as T, numpy_helper as nh
def _model():
    weights = [nh.from_array(np.random.rand(32, 32).astype('f'), f'w{i}') for i in range(6)]
    nodes, x = [], 'x'
    for i in range(6):
        nodes.append(h.make_node('MatMul', [x, f'w{i}'], [f'm{i}']))
        nodes.append(h.make_node('Tanh', [f'm{i}'], [f't{i}']))
        x = f't{i}'
    values = [h.make_tensor_value_info(name, T.FLOAT, [4, 32]) for name in ('x', x)]
    g = h.make_graph(nodes, 'g', values[:1], values[1:], weights)
    return h.make_model(g, opset_imports=[h.make_opsetid('', 17)], ir_version=8)
so = ort.SessionOptions(); so.intra_op_num_threads = 1
model = _model().SerializeToString()
sess = ort.InferenceSession(model, so, providers=['CPUExecutionProvider'])
big = np.random.rand(512, 32).astype('f')
""",
        """
results = {}
for k in range(200):
    x = big[(k * 4) % 500:(k * 4) % 500 + 4] * 0.5
    for rep in range(4):
        results[k, rep] = sess.run(None, {'x': x})[0].argmax(axis=1)
""",
    ),
    "csv parse": (
        """
import csv, io
lines = ('%d,nm%d,%.3f' % (i, i % 50, i * 0.37 % 100) for i in range(15000))
buf = 'id,name,score\\n' + '\\n'.join(lines)
""",
        """
stats = {}
for row in csv.DictReader(io.StringIO(buf)):
    name = row['name']
    score = float(row['score'])
    if name not in stats:
        stats[name] = [0, 0.0]
    stats[name][0] += 1
    stats[name][1] += score
means = {k: v[1] / v[0] for k, v in stats.items()}
""",
    ),
    "permutations": (
        """""",
        """
def perms(items):
    if len(items) <= 1:
        return [items]
    out = []
    for i in range(len(items)):
        rest = items[:i] + items[i+1:]
        for p in perms(rest):
            out.append([items[i]] + p)
    return out
ps = perms(list(range(8)))
""",
    ),
    "memo recursion": (
        """""",
        """
from functools import lru_cache
def ack(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ack(m - 1, 1)
    return ack(m - 1, ack(m, n - 1))
vals = [ack(2, k) for k in range(60)]
@lru_cache(None)
def paths(i, j):
    if i == 0 or j == 0:
        return 1
    return paths(i - 1, j) + paths(i, j - 1)
grid = paths(90, 90)
""",
    ),
    "edit distance": (
        """
import random
random.seed(3)
s1, s2 = (''.join(random.choice('acgt') for _ in range(300)) for _ in range(2))
""",
        """
def edit(a, b):
    prev = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        cur = [i]
        for j, cb in enumerate(b, 1):
            cost = 0 if ca == cb else 1
            cur.append(min(prev[j] + 1, cur[-1] + 1, prev[j - 1] + cost))
        prev = cur
    return prev[-1]
dd = edit(s1, s2)
""",
    ),
    "itertools": (
        """
import itertools as it, collections, operator
""",
        """
trip = sum(1 for a, b, c in it.combinations(range(1, 90), 3) if a * a + b * b == c * c)
runs = [(k, len(list(g))) for k, g in it.groupby(sorted(i * i % 97 for i in range(20000)))]
cnt = collections.Counter(map(operator.itemgetter(0), runs * 50))
acc = list(it.accumulate(range(50000), operator.xor))
""",
    ),
    "heap events": (
        """
import heapq, random
""",
        """
random.seed(4)
events = []
for i in range(500):
    heapq.heappush(events, (random.random(), i))
clock = 0.0
served = 0
while events and served < 15000:
    t, who = heapq.heappop(events)
    clock = t
    served += 1
    heapq.heappush(events, (t + random.expovariate(1.0), who))
""",
    ),
    "game of life": (
        """
import numpy as np
board = (np.random.rand(64, 64) > 0.6).astype(int)
""",
        """
for gen in range(300):
    nb = sum(np.roll(np.roll(board, y, 0), x, 1) for y in (-1, 0, 1) for x in (-1, 0, 1) if x or y)
    board = ((nb == 3) | ((board == 1) & (nb == 2))).astype(int)
""",
    ),
    "monte carlo": (
        """
import random, math
""",
        """
random.seed(5)
inside = 0
n = 150000
for _ in range(n):
    x = random.random()
    y = random.random()
    if x * x + y * y <= 1:
        inside += 1
pi = 4 * inside / n
""",
    ),
    "tree class": (
        """
import random
""",
        """
random.seed(6)
class Node:
    __slots__ = ('key', 'left', 'right')
    def __init__(self, key):
        self.key = key
        self.left = None
        self.right = None
class Tree:
    def __init__(self):
        self.root = None
    def insert(self, key):
        if self.root is None:
            self.root = Node(key)
            return
        cur = self.root
        while True:
            if key < cur.key:
                if cur.left is None:
                    cur.left = Node(key)
                    return
                cur = cur.left
            else:
                if cur.right is None:
                    cur.right = Node(key)
                    return
                cur = cur.right
t = Tree()
for _ in range(4000):
    t.insert(random.random())
""",
    ),
    "contexts decorators": (
        """
import contextlib, functools
""",
        """
calls = 0
def counted(f):
    @functools.wraps(f)
    def wrap(*a, **k):
        global calls
        calls += 1
        return f(*a, **k)
    return wrap
@contextlib.contextmanager
def scope(name, log):
    log.append(name)
    try:
        yield
    finally:
        log.pop()
@counted
def work(x, scale=2):
    return x * scale
log = []
res = 0
for i in range(10000):
    with scope('s', log):
        res += work(i, scale=3)
""",
    ),
    "asyncio streams": (
        """
import asyncio, threading
""",
        """
async def ping(n):
    total = 0
    for i in range(n):
        await asyncio.sleep(0)
        total += i
    return total
async def many():
    return await asyncio.gather(*[ping(100) for _ in range(20)])
box = []
def runner():
    box.append(asyncio.run(many()))
th = threading.Thread(target=runner)
th.start()
th.join()
""",
    ),
    "text module": (
        """
import sys, tempfile
folder = tempfile.mkdtemp()
open(folder + '/tok_mod.py', 'w').write('''
class Tokenizer:
    def __init__(self, text):
        self.text = text
        self.pos = 0
    def peek(self):
        return self.text[self.pos] if self.pos < len(self.text) else ""
    def next(self):
        c = self.peek()
        self.pos += 1
        return c
    def number(self):
        out = ""
        while self.peek().isdigit():
            out += self.next()
        return int(out)
def expr(t):
    v = term(t)
    while t.peek() in "+-" and t.peek():
        if t.next() == "+":
            v += term(t)
        else:
            v -= term(t)
    return v
def term(t):
    v = atom(t)
    while t.peek() == "*":
        t.next()
        v *= atom(t)
    return v
def atom(t):
    if t.peek() == "(":
        t.next()
        v = expr(t)
        t.next()
        return v
    return t.number()
''')
sys.path.insert(0, folder)
import tok_mod
src = '(12+3*4)-7*(2+5)+((1+2)*3)'
""",
        """
answers = []
for i in range(800):
    answers.append(tok_mod.expr(tok_mod.Tokenizer(src + '+%d' % i)))
""",
    ),
    "string building": (
        """""",
        """
import string
out = []
for i in range(12000):
    s = f'{i:05d}-{i % 26}'
    s = s.replace('-', string.ascii_lowercase[i % 26])
    if s[::-1] < s:
        s = s.upper()
    out.append(s.encode().hex())
joined = '|'.join(out)
parts = joined.split('|')
""",
    ),
    "k-means": (
        """
import numpy as np
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 2))
""",
        """
centres = X[:5]
for step in range(60):
    dist = ((X[:, None] - centres[None]) ** 2).sum(-1)
    label = dist.argmin(1)
    centres = np.array([X[label == k].mean(0) for k in range(5)])
""",
    ),
    "matrix class": (
        "",
        """
class Vec:
    def __init__(self, x, y):
        self.x = x
        self.y = y
    def __add__(self, other):
        return Vec(self.x + other.x, self.y + other.y)
    def __mul__(self, k):
        return Vec(self.x * k, self.y * k)
pos = Vec(0.0, 0.0)
vel = Vec(1.0, 0.5)
for i in range(8000):
    pos = pos + vel * 0.01
    vel = vel * 0.999
""",
    ),
    "date strings": (
        """
import datetime as dt
""",
        """
out = {}
day = dt.date(2020, 1, 1)
for i in range(15000):
    key = day.strftime('%Y-%m')
    out[key] = out.get(key, 0) + day.weekday()
    day = day + dt.timedelta(days=1)
""",
    ),
    "pandas merge": (
        """
import pandas as pd, numpy as np
left = pd.DataFrame({'k': np.arange(500), 'v': 1.0})
right = pd.DataFrame({'k': np.arange(0, 1000, 2), 'w': 2.0})
""",
        """
frames = []
for i in range(40):
    m = left.merge(right, on='k')
    m['s'] = m['v'] + m['w'] * i
    frames.append(m.head(10))
joined = pd.concat(frames)
""",
    ),
    "quick sort": (
        """
import random
random.seed(8)
values = [random.random() for _ in range(6000)]
""",
        """
def quick(items):
    if len(items) < 2:
        return items
    pivot = items[0]
    low = [x for x in items[1:] if x < pivot]
    high = [x for x in items[1:] if x >= pivot]
    return quick(low) + [pivot] + quick(high)
ordered = quick(values)
""",
    ),
    "torch autograd fit": (
        """
import torch
torch.set_num_threads(1)
xs = torch.linspace(-1, 1, 100); ys = xs ** 3
a = torch.zeros(4, requires_grad=True)
""",
        """
for it in range(200):
    pred = a[0] + a[1] * xs + a[2] * xs ** 2 + a[3] * xs ** 3
    loss = ((pred - ys) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        a -= 0.1 * a.grad
        a.grad = None
""",
    ),
    "torch embeddings": (
        """
import torch
from torch import nn
torch.set_num_threads(1)
emb = nn.Embedding(500, 16); lin = nn.Linear(16, 500)
ids = torch.randint(0, 500, (400,))
""",
        """
with torch.no_grad():
    scores = []
    for i in range(0, 400):
        h = emb(ids[i])
        scores.append(lin(h).softmax(-1)[ids[i]].item())
""",
    ),
    "caesar": (
        """
text = 'The quick brown fox jumps over the lazy dog. ' * 400
""",
        """
out = []
for ch in text:
    if ch.isalpha():
        base = 65 if ch.isupper() else 97
        out.append(chr((ord(ch) - base + 3) % 26 + base))
    else:
        out.append(ch)
secret = ''.join(out)
""",
    ),
    "file lines": (
        """
import tempfile, os
folder = tempfile.mkdtemp()
""",
        """
for n in range(30):
    with open(os.path.join(folder, f'f{n}.txt'), 'w') as f:
        for i in range(300):
            f.write(f'{n},{i}\\n')
total = 0
for name in os.listdir(folder):
    with open(os.path.join(folder, name)) as f:
        for line in f:
            total += int(line.split(',')[1])
""",
    ),
    "fraction sums": (
        """
from fractions import Fraction
""",
        """
total = Fraction(0)
terms = []
for i in range(1, 400):
    term = Fraction(1, i * (i + 1))
    total += term
    terms.append(total)
""",
    ),
}
"""The statements before, and the cell, by name."""
