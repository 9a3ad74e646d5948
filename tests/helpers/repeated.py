"""Hand-made recordings of repeated code, for comparisons."""

import numpy as np

from tests.helpers.tiny import kernel, line, op, profile

MS = 1_000_000
TIMES = {"load(x)": MS, "y = model(x)": 10 * MS, "y.sum()": 2 * MS}


def repeated(
    times, *, repeats=20, noise=0.01, seed=0, cell="In[1]", device=True, speed=None, **more
):
    """A recording of the ops `times` (name to ns), each a line with one kernel, in every repeat.

    `speed` holds a factor of the times of each repeat. `more` are entries of the info.
    """
    rng = np.random.default_rng(seed)
    ops, activities, bounds = [op(1, cell, 0, 10**12, op_type="cell", category="cell")], [], []
    now, number = 100, 2
    for repeat in range(repeats):
        begin = now
        for at, (name, time) in enumerate(times.items(), 1):
            factor = 1 if speed is None else speed[repeat]
            took = round(time * factor * np.exp(noise * rng.standard_normal()))
            ops.append(line(number, at, now, now + took, 1, cell, repeat=repeat) | {"name": name})
            if device:
                activities.append(
                    kernel(
                        now, now + took, number, name=f"kernel of {name}", repeat=repeat, bytes=64
                    )
                )
            now, number = now + took, number + 1
        bounds.append([begin, now])
    info = {"repeats": bounds, "wall_ns": now} if repeats > 1 else {"wall_ns": now, "code_ns": now}
    if repeats == 1:
        for row in (*ops, *activities):
            row["repeat"] = None
    devices = [{"device_id": 0, "name": "GPU X", "kind": "gpu"}]
    return profile(ops, activities, info={"devices": devices} | info | more)
