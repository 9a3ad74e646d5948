"""Python stacks of PyTorch's work: forward, on autograd's threads, and in replays of graphs."""

import pytest

import epprof_nb
from epprof_nb.recording.stacks import availability

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.skipif(
    availability.why_unavailable() is not None, reason="stacks cannot be read here"
)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(64, 64)
        self.second = torch.nn.Linear(64, 64)

    def forward(self, x):
        x = self.first(x)
        x = x.exp()
        x = x.tanh()
        return self.second(x)


FORWARD = Model.forward.__code__.co_firstlineno


@pytest.fixture
def work():
    model = Model().cuda()
    x = torch.ones(32, 64, device="cuda", requires_grad=True)
    model(x).sum().backward()
    torch.cuda.synchronize()
    return model, x


def lines(prof, stacks):
    """The innermost line of this file of each stack, as function and line; None for none."""
    parents, table = prof.stacks["parent_id"].fillna(-1), prof.stacks
    found = []
    for stack in stacks.fillna(-1):
        at = stack
        while at >= 0 and table.loc[at, "file"] != __file__:
            at = parents.loc[at]
        row = table.loc[at] if at >= 0 else None
        found.append(
            None if row is None else (row["function"].rpartition(".")[2], int(row["line"]))
        )
    return found


def kernels(prof):
    return prof.activities[prof.activities["kind"] == "kernel"]


def test_forward_kernels_have_the_line_that_called_them(work):
    model, x = work
    with epprof_nb.profile() as prof:
        model(x)
    acts = kernels(prof)
    assert set(acts["stack_source"]) == {"exact"}
    names = dict(zip(acts["name"], lines(prof, acts["stack_id"]), strict=True))
    assert {line for name, line in names.items() if "exp" in name} == {("forward", FORWARD + 2)}
    assert {line for name, line in names.items() if "tanh" in name} == {("forward", FORWARD + 3)}


def test_backward_kernels_have_the_line_that_created_their_node(work):
    model, x = work
    with epprof_nb.profile() as prof:
        model(x).sum().backward()
    acts = kernels(prof)
    main = prof.ops["thread_id"].iloc[0]
    backward = acts[acts["thread_id"] != main]
    assert len(backward) > 4
    assert not backward["stack_id"].isna().any()
    names = dict(zip(backward["name"], lines(prof, backward["stack_id"]), strict=True))
    assert {line for name, line in names.items() if "tanh" in name} == {("forward", FORWARD + 3)}
    sources = backward["stack_source"].value_counts()
    assert sources["exact"] >= 0.5 * len(backward)


def test_waits_have_the_line_that_waited(work):
    model, x = work

    def wait(loss):
        return loss.item()

    with epprof_nb.profile() as prof:
        wait(model(x).sum())
    waits = prof.activities[prof.activities["kind"] == "synchronization"]
    expected = ("wait", wait.__code__.co_firstlineno + 1)
    assert expected in lines(prof, waits["stack_id"])


def test_kernels_of_a_replay_have_the_stack_of_the_replay_and_of_the_capture(work):
    model, x = work
    graph = torch.cuda.CUDAGraph()

    def capture():
        with torch.no_grad(), torch.cuda.graph(graph):
            model(x)

    def replay():
        graph.replay()

    with epprof_nb.profile():
        capture()
    with epprof_nb.profile() as prof:
        replay()
    acts = kernels(prof)
    replayed = acts[acts["graph_node_id"].notna()]
    assert len(replayed) >= 4
    assert set(replayed["stack_source"]) == {"replay"}
    assert set(lines(prof, replayed["stack_id"])) == {
        ("replay", replay.__code__.co_firstlineno + 1)
    }
    captured = set(lines(prof, replayed["capture_stack_id"]))
    assert captured == {("forward", FORWARD + i) for i in (1, 2, 3, 4)}
