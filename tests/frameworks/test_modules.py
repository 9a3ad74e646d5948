"""Calls of torch.nn.Module as ops with their paths."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import subprocess
import sys
import textwrap
import threading
import weakref

import pytest

import epprof_nb

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - torch may be missing

from tests.frameworks import layers  # noqa: E402
from tests.frameworks.layers import Layer, kernel_modules, names_of  # noqa: E402
from tests.helpers.threads import run_all  # noqa: E402


@pytest.fixture
def values():
    return torch.ones(2, 4)


def test_calls_are_nested_ops_named_after_their_paths(named, values):
    model = nn.Sequential(Layer("a"), nn.Sequential(nn.ReLU(), Layer("b")))
    named(model=model)
    with epprof_nb.profile() as prof:
        model(values)
    assert names_of(prof, "module") == [
        "model", "model.0", "model.0.linear", "model.1", "model.1.0", "model.1.1",
        "model.1.1.linear",
    ]  # fmt: skip
    assert kernel_modules(prof) == {"a forward": {"model.0"}, "b forward": {"model.1.1"}}
    frame = prof.by_module()
    assert frame.loc["model.1.1", ["type", "class", "calls"]].tolist() == ["module", "Layer", 1]
    assert frame.loc["model", "device_ns"] == prof.activities["duration_ns"].sum()
    assert set(prof.ops["source"]) == {"torch"}


def test_a_class_that_assigns_the_call_of_modules_is_recorded(named, values):
    with epprof_nb.profile():

        class Early(Layer):
            __call__ = nn.Module.__call__

    class Late(Layer):
        __call__ = nn.Module.__call__

    calls = [vars(each)["__call__"] for each in (Early, Late)]
    model = nn.Sequential(Early("a"), Late("b"))
    named(model=model)
    for _ in range(2):
        with epprof_nb.profile() as prof:
            model(values)
        assert names_of(prof, "module") == [
            "model", "model.0", "model.0.linear", "model.1", "model.1.linear",
        ]  # fmt: skip
        assert kernel_modules(prof) == {"a forward": {"model.0"}, "b forward": {"model.1"}}
        assert [vars(each)["__call__"] for each in (Early, Late)] == calls


def test_modules_at_the_addresses_of_freed_ones_have_their_own_paths(values):
    class Left(nn.Module):
        def __init__(self):
            super().__init__()
            self.left = nn.ReLU()

        def forward(self, x):
            return self.left(x)

    class Right(Left):
        def __init__(self):
            nn.Module.__init__(self)
            self.right = nn.ReLU()

        def forward(self, x):
            return self.right(x)

    addresses = []
    with epprof_nb.profile() as prof:
        for _ in range(10):
            for model in (Left(), Right()):
                model(values)
                addresses.append(id(next(model.children())))
                del model
    assert len({*addresses}) < len(addresses)
    assert names_of(prof, "module") == ["Left", "Left.left", "Right", "Right.right"] * 10


def test_the_call_of_modules_is_used_like_a_function(named, values):
    model = Layer("a")
    named(model=model)
    original = nn.Module.__call__
    with epprof_nb.profile() as prof:
        call = nn.Module.__call__
        assert call is not original
        assert weakref.WeakMethod(model.__call__)()(values) is not None
        for made in (copy.copy(call), copy.deepcopy(call), pickle.loads(pickle.dumps(call))):
            assert made is original
        partial = copy.deepcopy(functools.partial(call, nn.Identity()))
        assert partial(values) is values
        assert (call.__code__, call.__name__) == (original.__code__, original.__name__)
        with pytest.raises(AttributeError):
            call(5)
    assert names_of(prof, "module") == ["model", "model.linear"]


def test_models_that_are_built_in_a_loop_keep_their_path(values):
    paths = []
    with epprof_nb.profile() as prof:
        for _ in range(20):
            vars(sys.modules["__main__"])["built"] = model = nn.Sequential(nn.ReLU())
            model(values)
            paths += ["built", "built.0"]
            del model, vars(sys.modules["__main__"])["built"]
    assert names_of(prof, "module") == paths


def test_keywords_reach_a_recorded_module(named, values):
    class Scaled(nn.Module):
        def forward(self, x, *more, factor=1, **others):
            return x * factor + sum(more) + sum(others.values())

    model = Scaled()
    named(model=model)
    with epprof_nb.profile() as prof:
        results = [
            model(values), model(values, 1, factor=2), model(x=values, factor=3, other=values),
            model.__call__(values, 2), nn.Module.__call__(model, values, factor=4),
        ]  # fmt: skip
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
            model()
        with pytest.raises(TypeError):
            nn.Module.__call__()
    assert [float(result[0, 0]) for result in results] == [1, 3, 4, 3, 4]
    assert names_of(prof, "module") == ["model"] * 6


def test_a_shared_module_has_one_path_and_several_calls(named, values):
    layer = Layer("shared")
    model = nn.Sequential(layer, nn.ReLU(), layer)
    named(model=model)
    with epprof_nb.profile() as prof:
        model(values)
    assert kernel_modules(prof) == {"shared forward": {"model.0"}}
    frame = prof.by_module()
    assert frame.loc["model.0", ["calls", "kernels"]].tolist() == [2, 2]
    assert "model.2" not in frame.index


def test_the_root_is_the_largest_model_of_the_user(named, values):
    inner = Layer("a")
    model = nn.Sequential(inner)
    named(inner=inner, model=model, _hidden=nn.Sequential(model, nn.ReLU()))
    with epprof_nb.profile() as prof:
        inner(values)
    assert names_of(prof, "module") == ["model.0", "model.0.linear"]


def test_a_model_without_a_name_has_that_of_its_class(values):
    with epprof_nb.profile() as prof:
        Layer("a")(values)
    assert names_of(prof, "module") == ["Layer", "Layer.linear"]


def test_a_module_that_is_added_while_recording_has_its_path(named, values):
    model = nn.Sequential(nn.ReLU())
    named(model=model)
    with epprof_nb.profile() as prof:
        model(values)
        model.append(nn.Tanh())
        model(values)
    assert names_of(prof, "module") == ["model", "model.0", "model", "model.0", "model.1"]


def test_modules_that_no_longer_exist_do_not_name_others(values):
    with epprof_nb.profile() as prof:
        for kind in (nn.ReLU, nn.Tanh) * 20:
            kind()(values)
    assert names_of(prof, "module") == ["ReLU", "Tanh"] * 20


def test_a_data_parallel_wrapper_is_no_part_of_the_path(named, values):
    model = nn.DataParallel(Layer("a"))
    named(model=model)
    with epprof_nb.profile() as prof:
        model(values)
    assert names_of(prof, "module") == ["model", "model", "model.linear"]
    assert prof.by_module().loc["model", ["calls", "class"]].tolist() == [1, "Layer"]


def test_an_attribute_named_module_is_part_of_the_path(named, values):
    model = nn.Sequential()
    model.module = nn.ReLU()
    named(model=model)
    with epprof_nb.profile() as prof:
        model(values)
    assert names_of(prof, "module") == ["model", "model.module"]


def test_an_exception_in_forward_ends_the_ops(named, values):
    class Fails(nn.Module):
        def forward(self, values):
            raise KeyError("mine")

    model = nn.Sequential(nn.ReLU(), Fails())
    named(model=model)
    with epprof_nb.profile() as prof:
        with pytest.raises(KeyError, match="mine") as error:
            model(values)
        nn.Tanh()(values)
    assert names_of(prof, "module") == ["model", "model.0", "model.1", "Tanh"]
    assert prof.ops["parent_op_id"].isna().tolist() == [True, False, False, True]
    assert error.traceback[-1].name == "forward"


def test_an_interrupt_in_forward_ends_the_ops(values):
    class Interrupted(nn.Module):
        def forward(self, values):
            raise KeyboardInterrupt

    with epprof_nb.profile() as prof:
        with pytest.raises(KeyboardInterrupt):
            Interrupted()(values)
        with epprof_nb.op("after"):
            pass
    assert prof.ops["parent_op_id"].isna().all()


def test_hooks_of_the_user_run_once_and_inside_of_the_op(named, values):
    layer, calls = Layer("a"), []
    named(layer=layer)
    layer.register_forward_pre_hook(lambda module, args: calls.append("before"))
    layer.register_forward_hook(lambda module, args, result: calls.append("after"))
    with epprof_nb.profile() as prof:
        layer(values)
    assert calls == ["before", "after"]
    assert names_of(prof, "module") == ["layer", "layer.linear"]


def test_no_grad_and_inference_mode(named, values):
    layer = Layer("a")
    named(layer=layer)
    with epprof_nb.profile() as prof:
        with torch.no_grad():
            layer(values)
        with torch.inference_mode():
            layer(values)
    assert kernel_modules(prof) == {"a forward": {"layer"}}
    assert prof.by_module().loc["layer", "calls"] == 2


def test_modules_of_several_threads(named, values):
    models = [Layer(f"thread {i}") for i in range(4)]
    named(**{f"model{i}": model for i, model in enumerate(models)})

    def run(model):
        for _ in range(20):
            model(values)

    with epprof_nb.profile() as prof:
        run_all(threading.Thread(target=run, args=(model,)) for model in models)
    assert kernel_modules(prof) == {f"thread {i} forward": {f"model{i}"} for i in range(4)}


def test_nothing_of_the_model_changes(named, values):
    model = nn.Sequential(Layer("a"), nn.ReLU())
    named(model=model)
    before, state = model(values), {k: v.clone() for k, v in model.state_dict().items()}
    attributes = {name: set(vars(module)) for name, module in model.named_modules()}
    call = nn.Module.__call__
    with epprof_nb.profile():
        assert torch.equal(model(values), before)
        assert nn.Module.__call__ is not call
        copies = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        assert nn.Module.__call__.__name__ == call.__name__
    assert nn.Module.__call__ is call
    assert {name: set(vars(module)) for name, module in model.named_modules()} == attributes
    for made in (model, *copies):
        assert made.state_dict().keys() == state.keys()
        assert all(torch.equal(made.state_dict()[name], state[name]) for name in state)
        assert torch.equal(made(values), before)


def test_a_replacement_by_others_stays(named, values):
    layer, seen = Layer("a"), []
    named(layer=layer)
    call = nn.Module.__call__
    try:
        with epprof_nb.profile() as prof:
            ours = nn.Module.__call__

            def theirs(self, *args):
                seen.append(type(self).__name__)
                return ours(self, *args)

            nn.Module.__call__ = theirs
            layer(values)
        assert nn.Module.__call__ is theirs
        assert names_of(prof, "module") == ["layer", "layer.linear"]
        with epprof_nb.profile() as again:
            layer(values)
        assert nn.Module.__call__ is theirs
        assert names_of(again, "module") == ["layer", "layer.linear"]
    finally:
        nn.Module.__call__ = call
    assert seen == ["Layer", "Linear"] * 2


def test_no_frameworks_records_none(values):
    call = nn.Module.__call__
    with epprof_nb.profile(frameworks=[]) as prof:
        assert nn.Module.__call__ is call
        Layer("a")(values)
    assert len(prof.ops) == 0


def test_a_nested_profile_starts_the_framework(named, values):
    layer = Layer("a")
    named(layer=layer)
    with epprof_nb.profile(frameworks=[]) as outer:
        layer(values)
        with epprof_nb.profile() as inner:
            layer(values)
    assert names_of(inner, "module") == ["layer", "layer.linear"]
    assert names_of(outer, "module") == ["layer", "layer.linear"]


def test_many_profiles_are_alike(named, values):
    model = nn.Sequential(Layer("a"), nn.ReLU())
    named(model=model)
    found = []
    for _ in range(100):
        with epprof_nb.profile() as prof:
            model(values).sum().backward()
        found.append((names_of(prof, "module"), names_of(prof, "backward")))
    assert len(found[0][0]) == 4
    assert all(names == found[0] for names in found)


def in_a_process(code):
    return subprocess.run(
        [sys.executable, "-c", "import gc; gc.disable()\n" + textwrap.dedent(code)],
        env={"PYTHONPATH": ":".join(sys.path)}, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


def test_torch_may_be_imported_in_the_profile():
    printed = in_a_process("""
        import sys
        import epprof_nb
        with epprof_nb.profile() as prof:
            assert "torch" not in sys.modules
            import torch
            model = torch.nn.Sequential(torch.nn.Linear(4, 4))
            model(torch.ones(2, 4)).sum().backward()
        ours = [f.name for f in sys.meta_path if type(f).__module__.startswith("epprof_nb")]
        print(prof.ops["name"].tolist(), [name for name in ours if "torch" in name])
        assert torch.nn.Module.__call__ is torch.nn.Module._wrapped_call_impl
    """)
    # Compilations by torch are noted at any time.
    ours = "['torch._inductor.compile_fx']"
    assert printed == f"['model', 'model.0', 'backward', 'model', 'model.0'] {ours}\n"


def test_torch_is_never_imported_by_a_profile():
    in_a_process("""
        import sys
        import epprof_nb
        with epprof_nb.profile() as prof:
            pass
        assert "torch" not in sys.modules
        prof.by_module(), prof.by_step(), prof.joined(), prof._repr_mimebundle_()
        assert "torch" not in sys.modules
    """)


def test_a_torch_without_what_is_needed_is_named_in_a_note(tmp_path):
    (tmp_path / "torch.py").write_text("__version__ = '1.0'\nclass compiler: pass\n")
    printed = in_a_process(f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import epprof_nb
        with epprof_nb.profile() as prof:
            import torch
        print(prof.info["notes"])
    """)
    assert "Modules of torch 1.0 are not recorded, because it has no " in printed
    assert "torch.compiler.is_compiling" in printed


def test_the_method_of_a_class_in_a_file_is_known(named):
    model = nn.Sequential(Layer("a"), nn.ReLU())
    named(model=model)
    with epprof_nb.profile() as prof:
        model(torch.ones(2, 4))
    file, line = layers.__file__, inspect.getsourcelines(Layer.forward)[1]
    # Modules of PyTorch itself have no source of the user's.
    assert prof.info["class_places"] == {"Layer": {"file": file, "line": line}}
    assert "return work(self.linear(values), self.label)" in prof.sources[file]


def test_a_class_with_a_call_method_of_its_own(named, values):
    class Doubled(nn.Linear):
        def __call__(self, values):
            return super().__call__(values) * 2

    layer = Doubled(4, 4)
    named(layer=layer)
    expected = layer(values)
    with epprof_nb.profile() as prof:
        assert torch.equal(layer(values), expected)
        assert torch.equal(nn.Module.__call__(layer, values) * 2, expected)
        assert torch.equal(nn.Module.__call__(layer, input=values) * 2, expected)
        with pytest.raises(TypeError):
            nn.Module.__call__()
    assert names_of(prof, "module") == ["layer"] * 3


def test_the_call_of_a_module_can_be_inspected(values):
    layer = nn.Linear(4, 4)
    expected = inspect.signature(layer), nn.Module.__call__.__name__, nn.Module.__call__.__doc__
    with epprof_nb.profile():
        found = inspect.signature(layer), nn.Module.__call__.__name__, nn.Module.__call__.__doc__
        call = pickle.loads(pickle.dumps(layer.__call__))
        assert torch.equal(call(values), layer(values))
    assert found == expected


def test_parameters_that_are_no_tensors(values):
    layer = nn.Linear(4, 4)
    layer.extra = nn.Identity()
    layer.extra._parameters = None
    with epprof_nb.profile() as prof:
        layer(values)
    assert names_of(prof, "module") == ["Linear"]
