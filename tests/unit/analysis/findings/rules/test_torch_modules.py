"""Findings on the modules of PyTorch in profiles without device work."""

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.ranking import findings
from tests.helpers.tiny import kernel, op, profile
from tests.helpers.training import framework

MS = 1_000_000


def loop(lstm, *, more=(), wall_ns=100 * MS, work=()):
    """Two steps of a module whose LSTM takes `lstm` ms forward, and twice that backward."""
    ops = []
    for step in range(2):
        t, n = 50 * MS * step, 10 * step
        backward = t + 20 * MS
        ops += [
            framework(n + 1, "net", t, t + 20 * MS),
            framework(n + 2, "net.lstm", t + MS, t + (1 + lstm) * MS, n + 1),
            framework(n + 3, "backward", backward, t + 50 * MS, None, "autograd"),
            framework(n + 4, "net", backward, t + 50 * MS, n + 3, "backward"),
            framework(n + 5, "net.lstm", backward, backward + 2 * lstm * MS, n + 4, "backward"),
        ]
    return profile([*ops, *more], work, info={"wall_ns": wall_ns})


def found(prof):
    return [f for f in findings(ProfileIndex(prof), limit=None) if f.kind == "hot module"]


def test_the_module_that_takes_most_of_the_time_is_named():
    prof = loop(12)
    (finding,) = found(prof)
    assert finding.text == (
        "Module `net.lstm` accounts for 72 % of the wall time (72.0 ms, 48.0 ms of it in backward "
        "passes), without the modules inside of it."
    )
    assert (finding.low_ns, finding.gain_ns) == (0, 72 * MS)
    assert "`--detail operators` records its operators" in finding.remedy
    assert prof.evidence(1).index.tolist() == [2, 5, 12, 15]
    operator = op(99, "aten::lstm", 2 * MS, 3 * MS, 2, category="operator", op_type="operator")
    (finding,) = found(loop(12, more=[operator]))
    assert "`prof.by_operator(modules=True)`" in finding.remedy


def test_modules_that_take_little_time_or_that_launched_work_are_not_named():
    assert not found(loop(12, wall_ns=500 * MS))
    assert not found(loop(12, work=[kernel(0, MS, 2)]))


def test_compilations_are_no_time_of_the_module_that_is_compiled():
    compilation = framework(99, "torch.compile", 2 * MS, 20 * MS, 1, "compile")
    (finding,) = found(loop(12, more=[compilation]))
    assert finding.gain_ns == 72 * MS
    compiled = [
        framework(1, "net", 0, 90 * MS),
        framework(2, "torch.compile", MS, 80 * MS, 1, "compile"),
    ]
    assert not found(profile(compiled, info={"wall_ns": 100 * MS}))
