"""Hand-made recordings of a training loop: framework ops with device work of known length."""

from tests.helpers.tiny import call, kernel, line, op, profile


def framework(number, name, start, end, parent=None, op_type="module", **more):
    """An op that a framework records."""
    args = {"class": name.rpartition(".")[2].title()} if op_type in MODULES else None
    return op(
        number, name, start, end, parent, op_type=op_type, category="framework", source="torch",
        **({"args": args} | more if args else more),
    )  # fmt: skip


MODULES = ("module", "recompute", "backward")


def training(steps=2, **info):
    """A loop of `steps` steps, each 1,000 ns long, from 100 ns on."""
    ops = [op(1, "In[1]", 0, 10_000, op_type="cell", category="cell"), line(2, 1, 0, 9_000, 1)]
    kernels = []
    for step in range(steps):
        t, n = 100 + 1000 * step, 10 + 20 * step
        ops += [
            framework(n, "waiting for data", t, t + 50, 2, "data"),
            framework(n + 1, "net", t + 100, t + 300, 2),
            framework(n + 2, "net.a", t + 110, t + 150, n + 1),
            framework(n + 3, "net.b", t + 200, t + 280, n + 1),
            framework(n + 4, "backward", t + 400, t + 700, 2, "autograd"),
            framework(n + 5, "net", t + 410, t + 690, n + 4, "backward"),
            framework(n + 6, "net.b", t + 420, t + 500, n + 5, "backward"),
            framework(n + 7, "net.b", t + 430, t + 440, n + 6, "recompute"),
            framework(n + 8, "net.a", t + 510, t + 600, n + 5, "backward"),
            framework(n + 9, "Adam.step", t + 800, t + 1000, 2, "optimizer"),
        ]
        kernels += [
            kernel(t + 60, t + 70, 2, name="copy of the batch"),
            kernel(t + 120, t + 140, n + 2, name="a"),
            kernel(t + 210, t + 250, n + 3, name="b"),
            kernel(t + 250, t + 255, n + 1, name="sum"),
            kernel(t + 350, t + 353, 2, name="loss"),
            kernel(t + 405, t + 406, n + 4, name="gradient of the loss"),
            kernel(t + 430, t + 470, n + 7, name="b again"),
            kernel(t + 470, t + 550, n + 6, name="gradient of b"),
            kernel(t + 560, t + 600, n + 8, name="gradient of a"),
            kernel(t + 600, t + 650, n + 5, name="ncclDevKernel_AllReduce"),
            kernel(t + 900, t + 907, n + 9, name="update"),
        ]
    kernels.append(kernel(8_000, 8_011, name="stray"))
    for number, row in enumerate(kernels, 1):
        row["correlation_id"] = number
    calls = [
        call(row["start_ns"] - 1, row["start_ns"], correlation_id=row["correlation_id"])
        for row in kernels
    ]
    return profile(ops, kernels, calls, info={"wall_ns": 10_000} | info)
