"""Objects of a type, found without a call of Python for each."""

import pytest

from epprof_nb import _native


class Kind(type):
    def __instancecheck__(cls, _):
        raise AssertionError("code of a metaclass ran")

    __subclasscheck__ = __instancecheck__


class Base(metaclass=Kind):
    pass


class Derived(Base):
    pass


class Proxy:
    __class__ = Base


def test_instances_of_a_type_run_no_code_of_the_program():
    base, derived = Base(), Derived()
    assert _native.instances_of([1, base, Proxy(), derived, Base], Base) == [base, derived]
    assert _native.instances_of([], Base) == []


def test_other_arguments_are_refused():
    for arguments in (((1,), Base), ([1], Base())):
        with pytest.raises(TypeError):
            _native.instances_of(*arguments)
