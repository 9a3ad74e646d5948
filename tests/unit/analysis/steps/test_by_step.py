"""by_step: the steps of a training loop and their phases."""

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.steps.by_step import step_statistics
from epprof_nb.profiles import Profile
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.headers import late_header
from tests.helpers.tiny import call, kernel, line, op, profile
from tests.helpers.training import framework, training


def test_a_step_has_its_phases():
    frame = training(3).by_step()
    assert frame["step"].tolist() == [0, 1, 2]
    assert frame["start_ns"].tolist() == [100, 1100, 2100]
    assert frame["wall_ns"].tolist() == [1000] * 3
    last = frame.iloc[2]
    assert last[["data_ns", "forward_ns", "backward_ns", "optimizer_ns"]].tolist() == [
        50, 65, 161, 7,
    ]  # fmt: skip
    assert last[["communication_ns", "other_ns", "device_ns"]].tolist() == [50, 13, 296]
    assert last[["idle_ns", "kernels"]].tolist() == [1000 - 296, 11]
    assert last[["forward_host_ns", "backward_host_ns", "optimizer_host_ns"]].tolist() == [
        200, 300, 200,
    ]  # fmt: skip
    in_phases = last[["data_ns", "forward_host_ns", "backward_host_ns", "optimizer_host_ns"]].sum()
    assert last["other_host_ns"] == 1000 - in_phases


def test_without_device_work_idle_time_is_missing():
    ops = [framework(1, "net", 0, 100), framework(2, "SGD.step", 110, 150, op_type="optimizer")]
    frame = profile(ops, info={"wall_ns": 200}).by_step()
    assert frame["idle_ns"].isna().tolist() == [True]
    assert frame["other_host_ns"].tolist() == [10]


def test_compilations_are_no_part_of_the_phase_around_them():
    ops = [
        framework(1, "net", 0, 400),
        framework(2, "net.a", 10, 390, 1),
        framework(3, "torch.compile", 20, 320, 2, "compile"),
        framework(4, "torch.compile", 30, 40, 3, "compile"),
        framework(5, "backward", 400, 500, None, "autograd"),
        framework(6, "net", 410, 490, 5, "backward"),
        framework(7, "torch.compile", 420, 480, 6, "compile"),
        framework(8, "SGD.step", 500, 600, None, "optimizer"),
    ]
    (step,) = profile(ops, info={"wall_ns": 600}).by_step().to_dict("records")
    phases = ("forward", "backward", "optimizer", "other")
    assert [step[f"{phase}_host_ns"] for phase in phases] == [100, 40, 100, 360]


def test_steps_of_the_script_take_precedence():
    frame = training(2, repeats=[[0, 100], [100, 1600], [1600, 2500]], first_step=4).by_step()
    assert frame["step"].tolist() == [4, 5, 6]
    assert frame["wall_ns"].tolist() == [100, 1500, 900]
    assert frame["optimizer_ns"].tolist() == [0, 7, 7]


def test_a_script_without_marked_steps_has_those_of_the_optimizer():
    made = training(2, repeats=[[0, 9000]], first_step=0)
    assert made.by_step()["wall_ns"].tolist() == [1000, 1000]
    assert step_statistics(ProfileIndex(made)).count == 2
    single = training(2, repeats=[[0, 9000]], first_step=20)
    assert single.by_step()["step"].tolist() == [20]


def test_repeats_are_no_steps():
    frame = training(2, repeats=[[0, 5000]]).by_step()
    assert frame["wall_ns"].tolist() == [1000, 1000]


def own_loader(before_loop=0, statements=False):
    """A function, or a visible loop, that loads each batch for 500 ns and uploads it by itself."""
    source = "for batch in batches:" if statements else "losses = train(3)"
    ops = [op(1, "In[1]", 0, 9_000, op_type="cell", category="cell")]
    ops.append(line(2, 3, before_loop if statements else 5, 8_000, 1, name=source))
    kernels, calls = [], []
    for step in range(3):
        t, n = before_loop + 5 + 1000 * step, 10 + 10 * step
        above = 2
        if statements:
            ops.append(line(n + 3, 5, t + 850, t + 900, 2, name="optimizer.step()"))
            above = n + 3
        ops += [
            framework(n, "net", t + 700, t + 750, 2),
            framework(n + 1, "SGD.step", t + 855, t + 890, above, "optimizer"),
        ]
        kernels.append(kernel(t + 510, t + 600, 2, correlation_id=n))
        calls.append(call(t + 500, t + 501, correlation_id=n))
    return profile(ops, kernels, calls, info={"wall_ns": 9_000})


def test_the_first_step_begins_with_the_code_that_was_profiled():
    frame = own_loader().by_step()
    assert frame["start_ns"].tolist() == [5, 895, 1895]
    assert frame["kernels"].tolist() == [1, 1, 1]
    assert frame["device_ns"].tolist() == [90, 90, 90]


def test_the_first_step_begins_with_a_visible_loop():
    frame = own_loader(before_loop=4_000, statements=True).by_step()
    assert frame["start_ns"].tolist() == [4_000, 4_895, 5_895]
    assert frame["kernels"].tolist() == [1, 1, 1]


def test_code_before_the_loop_of_a_function_is_in_no_step():
    frame = own_loader(before_loop=4_000).by_step()
    # As long before its first module as the longest of the later steps.
    assert frame["start_ns"].tolist() == [4_705 - 810, 4_895, 5_895]
    assert frame["kernels"].tolist() == [1, 1, 1]


def test_the_optimizer_is_the_first_work_if_its_closure_has_the_rest():
    made = profile(
        [
            op(1, "In[1]", 0, 9_000, op_type="cell", category="cell"),
            line(2, 3, 5, 8_000, 1, name="train(2)"),
            framework(3, "LBFGS.step", 4_500, 5_000, 2, "optimizer"),
            framework(4, "net", 4_600, 4_700, 3),
            framework(5, "net", 5_100, 5_200, 2),
            framework(6, "LBFGS.step", 5_300, 5_800, 2, "optimizer"),
        ],
        [kernel(4_650, 4_690, 4)],
        info={"wall_ns": 9_000},
    )
    # As long before it as the second step takes until its first module.
    assert made.by_step()["start_ns"].tolist() == [4_400, 5_000]


def test_a_single_step_begins_with_the_profiled_code():
    ops = [
        op(1, "In[1]", 10, 9_000, op_type="cell", category="cell"),
        framework(2, "net", 500, 600, 1),
        framework(3, "SGD.step", 700, 800, 1, "optimizer"),
    ]
    made = profile(ops, [kernel(100, 200, 1)], [], info={"wall_ns": 9_000})
    assert made.by_step()[["start_ns", "wall_ns", "kernels"]].to_numpy().tolist() == [[10, 790, 1]]


def test_the_summary_names_data_only_if_a_loader_was_recorded():
    text = step_statistics(ProfileIndex(own_loader())).text
    assert text.endswith("host time: forward 5.2 %, backward 0 %, optimizer 3.6 %, other 91 %")


def two_optimizers(gap):
    """Two optimizers whose steps follow each other, or with a forward pass between them."""
    ops = [
        framework(1, "net", 0, 100),
        framework(2, "SGD.step", 110, 150, op_type="optimizer"),
        framework(3, "Adam.step", 200, 300, op_type="optimizer"),
    ]
    if gap:
        ops.append(framework(4, "net", 160, 190))
    return profile(ops, [kernel(10, 20, 1)], info={"wall_ns": 400})


def test_steps_of_optimizers_without_work_between_them_are_one():
    assert two_optimizers(gap=False).by_step()["wall_ns"].tolist() == [300]
    assert two_optimizers(gap=True).by_step()["wall_ns"].tolist() == [150, 150]


def test_a_closure_is_part_of_the_step():
    made = profile(
        [
            framework(1, "LBFGS.step", 0, 500, op_type="optimizer"),
            framework(2, "net", 10, 100, 1),
            framework(3, "backward", 110, 200, 1, "autograd"),
            framework(4, "net", 210, 300, 1),
            framework(5, "LBFGS.step", 600, 900, op_type="optimizer"),
        ],
        [kernel(20, 30, 2), kernel(400, 401, 1)],
        info={"wall_ns": 1000},
    )
    frame = made.by_step()
    # Only the optimizer ran between the two.
    assert frame[["wall_ns", "forward_ns", "optimizer_ns"]].to_numpy().tolist() == [[900, 10, 1]]
    assert frame["forward_host_ns"].tolist() == [180]


def test_clipping_gradients_and_zero_grad_end_no_step():
    made = profile(
        [
            framework(1, "net", 0, 100),
            framework(2, "clip_grad_norm_", 110, 120, op_type="optimizer"),
            framework(3, "Adam.zero_grad", 130, 150, op_type="optimizer"),
            line(4, 1, 160, 200),
        ],
        [kernel(10, 20, 1)],
    )
    assert len(made.by_step()) == 0


def test_the_summary_has_the_steps_and_their_phases():
    model = ViewModel(training(4))
    expected = (
        "4 steps: mean 1.00 µs, median 1.00 µs, standard deviation 0 s; host time: data 5.0 %, "
        "forward 20 %, backward 30 %, optimizer 20 %, other 25 %"
    )
    assert model.headline.repeats.text == expected
    shown = late_header(model)["headline"]["repeats"]
    assert (shown["text"], shown["names"]) == (expected, {"unit": "step", "first": 0})


def test_repeated_code_and_a_single_step_have_no_statistics_of_steps():
    assert step_statistics(ProfileIndex(training(1))) is None
    assert step_statistics(ProfileIndex(training(3, repeats=[[0, 3000], [3000, 6000]]))) is None


def test_phases_are_missing_if_pytorch_was_not_recorded():
    prof = training(2)
    phases = ["data_ns", "forward_ns", "backward_ns", "other_ns", "forward_host_ns"]
    assert prof.by_step()[phases].notna().all(axis=None)
    info = prof.info | {"recording": {"frameworks": ["jax"]}}
    frame = Profile(prof.tables, info).by_step()
    assert frame[phases].isna().all(axis=None)
    assert (frame["device_ns"] > 0).all()
