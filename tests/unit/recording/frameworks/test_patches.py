"""Replaced functions of frameworks: what a class or module had is there again afterwards."""

import ctypes

import pytest

from epprof_nb.recording.frameworks.patches import Patches

method = ctypes.pythonapi.PyInstanceMethod_New
method.argtypes, method.restype = [ctypes.py_object], ctypes.py_object


class Extension:
    """A class like those of pybind11, whose functions are in an ``instancemethod``."""

    size = method(len)
    plain = staticmethod(abs)
    made = classmethod(lambda cls: cls.__name__)

    def __len__(self):
        return 7

    def inherited(self):
        return "base"


class Derived(Extension):
    pass


def wrap(original):
    def ours(*args):
        return original(*args)

    return ours


@pytest.mark.parametrize("ends", ["restore", "suspend"])
def test_methods_of_extensions_get_their_instance_again(ends):
    stored = dict(vars(Extension))
    patches = Patches()
    patches.replace(Extension, "size", wrap)
    assert Extension().size() == 7
    getattr(patches, ends)()
    assert Extension().size() == 7
    patches.resume()
    assert Extension().size() == 7
    patches.restore()
    assert dict(vars(Extension)) == stored


def test_static_and_class_methods_are_themselves_again():
    patches = Patches()
    for name in ("plain", "made"):
        patches.replace(Extension, name, wrap)
    patches.restore()
    assert Extension().plain(-3) == 3
    assert Derived().made() == "Derived"


def test_inherited_methods_are_inherited_again():
    patches = Patches()
    patches.replace(Derived, "inherited", wrap)
    assert Derived().inherited() == "base"
    patches.suspend()
    patches.resume()
    patches.restore()
    assert "inherited" not in vars(Derived)
    assert Derived().inherited() == "base"


def test_replacements_of_others_stay():
    patches = Patches()
    patches.replace(Derived, "inherited", wrap)
    theirs = Derived.inherited = lambda self: "theirs"
    patches.restore()
    assert Derived.inherited is theirs
    del Derived.inherited
