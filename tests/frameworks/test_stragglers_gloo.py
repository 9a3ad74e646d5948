"""Ranks that are late at collectives of gloo, and what made them late."""

import pytest

from epprof_nb.analysis.ranks.collectives import collectives_table
from epprof_nb.analysis.ranks.straggler_reasons import straggler_sentence, stragglers_table
from tests.helpers.rank_programs import run_ranks

pytest.importorskip("torch", reason="PyTorch is not installed")

TRAINING = """
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(50, 50))

    def augment(batch):
        if rank == 1:
            time.sleep(float(os.environ["DELAY"]))
        return batch

    def train(steps):
        for _ in range(steps):
            model(augment(torch.randn(8, 50))).sum().backward()

    train(3)
    dist.barrier()
    with epprof_nb.profile() as prof:
        train(12)
    save(prof)
    dist.destroy_process_group()
"""


def test_gradients_are_reduced_in_cpp_and_a_slow_rank_is_named(tmp_path):
    # A longer delay is for systems that suspend the ranks for longer than that.
    for delay in (0.02, 0.1, 0.5):
        folder = tmp_path / str(delay)
        folder.mkdir()
        ranks = run_ranks(folder, TRAINING, 2, DELAY=str(delay))
        frame = collectives_table(ranks).to_frame()
        assert (frame["kind"] == "all_reduce").sum() == 24
        assert set(frame["bytes"]) == {50 * 51 * 4}
        rows = stragglers_table(ranks).to_frame()
        if len(rows) and rows["function"].iloc[0] == "augment":
            break
    first = rows.iloc[0]
    assert (first["rank"], first["function"], first["kind"]) == (1, "augment", "line")
    code = (folder / "train.py").read_text().splitlines()
    assert "time.sleep(" in code[int(first["line"]) - 1]
    assert first["waited_ns"] > 0
    assert "augment in train.py line" in straggler_sentence(ranks)
