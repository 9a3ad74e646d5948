"""Callbacks after imports: they are called once, whatever looks for the module before."""

import importlib
import importlib.util
import sys
from importlib.machinery import SourceFileLoader

import pytest

from epprof_nb.util.after_import import after_import, cancel

NAME = "epprof_imported_module"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return the file of a module that can be imported; later hooks and modules are removed."""
    finders = list(sys.meta_path)
    path = tmp_path / f"{NAME}.py"
    path.write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield path
    sys.meta_path[:] = finders
    sys.modules.pop(NAME, None)


@pytest.fixture
def calls(module):
    calls = []
    for number in range(2):
        after_import(NAME, lambda number=number: calls.append(number))
    return calls


def test_functions_are_called_after_a_look_for_the_module(calls):
    spec = importlib.util.find_spec(NAME)
    assert type(spec.loader) is SourceFileLoader
    assert spec.loader.get_source(NAME) == "value = 1\n"
    assert calls == []
    assert importlib.import_module(NAME).value == 1
    assert sorted(calls) == [0, 1]
    assert not any(getattr(finder, "name", None) == NAME for finder in sys.meta_path)
    importlib.reload(sys.modules[NAME])
    assert sorted(calls) == [0, 1]


def test_functions_are_called_once_for_a_spec_that_is_executed(calls):
    spec = importlib.util.find_spec(NAME)
    importlib.util.find_spec(NAME)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert sorted(calls) == [0, 1]
    assert "exec_module" not in vars(spec.loader)


def test_functions_are_called_after_imports_that_failed(calls, module):
    module.rename(module.with_suffix(".away"))
    importlib.invalidate_caches()
    with pytest.raises(ImportError):
        importlib.import_module(NAME)
    module.write_text("raise RuntimeError")
    importlib.invalidate_caches()
    with pytest.raises(RuntimeError):
        importlib.import_module(NAME)
    assert calls == []
    module.write_text("value = 2\n")
    assert importlib.import_module(NAME).value == 2
    assert sorted(calls) == [0, 1]


def test_a_finder_that_asks_all_finders_is_asked_once(calls):
    class Asks:
        asking = False

        def find_spec(self, name, path=None, target=None):
            if name != NAME or self.asking:
                return None
            self.asking = True
            return importlib.util.find_spec(name)

    sys.meta_path.insert(2, Asks())  # after both hooks
    importlib.import_module(NAME)
    assert sorted(calls) == [0, 1]


def test_a_program_may_remove_the_hooks(calls):
    spec = importlib.util.find_spec(NAME)
    sys.meta_path[:] = [finder for finder in sys.meta_path if isinstance(finder, type)]
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert sorted(calls) == [0, 1]


def test_a_cancelled_function_is_not_called(module):
    calls = []

    def function():
        calls.append(1)

    after_import(NAME, function)
    spec = importlib.util.find_spec(NAME)
    cancel(NAME, function)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert calls == []
