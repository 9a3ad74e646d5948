"""The examples of docstrings run and show what they say."""

import builtins
import doctest
import importlib
import pkgutil

import pytest

import epprof_nb

MODULES = [
    module
    for module in pkgutil.walk_packages(epprof_nb.__path__, "epprof_nb.")
    if "demo_scripts" not in module.name
]


def has_examples(module):
    loader = module.module_finder.find_spec(module.name).loader
    return ">>>" in (loader.get_source(module.name) or "")


def test_every_module_can_be_imported():
    for module in MODULES:
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name.startswith("epprof_nb"):  # else it is an optional library
                raise


@pytest.mark.parametrize("name", [module.name for module in filter(has_examples, MODULES)])
def test_the_examples_of_a_module_hold(name, monkeypatch):
    # doctest displays results as plain Python does, which sets `_` for every later test.
    monkeypatch.setattr(builtins, "_", None, raising=False)
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        pytest.skip(str(error))  # an optional library
    registry = importlib.import_module("epprof_nb.ep.kernel").REGISTRY
    defined = list(registry._defined)
    try:
        assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
    finally:
        registry._defined[:] = defined  # an example's kernels would replace those of the package
