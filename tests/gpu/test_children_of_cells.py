"""Children of a notebook on a GPU: spawned ones are recorded, those forked too late are listed."""

import json

import pytest

from tests.helpers.jupyter_kernels import running_kernel

pytest.importorskip("torch", reason="PyTorch is not installed")

MODULE = """
import torch

def engine(requests):
    while (count := requests.recv()) is not None:
        try:
            x = torch.ones(1000, device="cuda")
            for _ in range(count):
                x.add_(1)
            torch.cuda.synchronize()
            requests.send("done")
        except RuntimeError as error:
            requests.send(str(error))
"""
START = """
%load_ext epprof_nb
%config GpuProfile.children = True
import json, multiprocessing as mp, sys
sys.path.insert(0, {folder!r})
import torch, work_on_gpu
def start(how):
    context = mp.get_context(how)
    end, other = context.Pipe()
    context.Process(target=work_on_gpu.engine, args=(other,), daemon=True).start()
    end.send(1)
    end.recv()
    return end
"""
SHOW = """
kernels = job.by_rank()["kernels"]
rows = job.ranks.iterrows()
print(json.dumps([[r.state, str(r.reason), int(kernels.get(n, -1))] for n, r in rows]))
"""


def test_engines_on_a_gpu(tmp_path):
    (tmp_path / "work_on_gpu.py").write_text(MODULE)
    with running_kernel() as client:

        def run(cell):
            printed = []

            def hook(message):
                assert message["msg_type"] != "error", message["content"]
                if message["msg_type"] == "stream":
                    printed.append(message["content"]["text"])

            client.execute_interactive(cell, output_hook=hook, timeout=300)
            return "".join(printed)

        run(START.format(folder=str(tmp_path)))
        # Listening starts no CUDA in the notebook: its forked child can use the GPU.
        run("forked, spawned = start('fork'), start('spawn')")
        run("torch.ones(1, device='cuda'); late = start('fork')")
        run("%%gpuprofile -q job --children\nfor e in (forked, spawned): e.send(5); e.recv()")
        _, *children = json.loads(run(SHOW))
    recorded = [kernels for state, _, kernels in children if state == "complete"]
    assert len(recorded) == 2
    assert all(kernels >= 5 for kernels in recorded)
    (why,) = (reason for state, reason, _ in children if state == "not recorded")
    assert "forked after its parent had started CUDA" in why
