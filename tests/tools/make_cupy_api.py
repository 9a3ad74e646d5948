"""Write tests/data/cupy_api.json: the part of NumPy's interface that CuPy has.

::

    python -m tests.tools.make_cupy_api

needs CuPy, but no GPU. Each function is listed with its parameters, each ufunc with its types, and
each method of arrays with its parameters.
"""

from __future__ import annotations

import inspect
import json
import re

import numpy as np

from tests.paths import DATA

OUTPUT = DATA / "cupy_api.json"
MODULES = ("fft", "linalg", "lib.stride_tricks")


def parameters(function):
    """Names of the parameters; None if they are not known."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        pass
    # Compiled functions have a signature as the first line of their documentation.
    found = re.match(r"[\w.]+\((.*)\)", (function.__doc__ or "").split("\n")[0])
    if not found:
        return None
    words = (part.split("=")[0].split() for part in found[1].split(","))
    return [word[-1].strip("*") for word in words if word and word[-1] not in ("self", "*")]


def functions(module, of_numpy):
    """Functions by name that NumPy has as well."""
    import cupy

    found = {}
    for name in sorted(set(dir(module)) & set(dir(of_numpy))):
        function = getattr(module, name)
        if isinstance(function, cupy.ufunc):
            found[name] = {"types": list(function.types)}
        elif callable(function) and not inspect.isclass(function) and name[0] != "_":
            found[name] = {"parameters": parameters(function)}
    return found


def interface():
    """The interface of the installed CuPy, as far as NumPy has it."""
    import cupy

    made = {"version": cupy.__version__, "": functions(cupy, np)}
    for path in MODULES:
        module, of_numpy = cupy, np
        for name in path.split("."):
            module, of_numpy = getattr(module, name), getattr(of_numpy, name)
        made[path] = functions(module, of_numpy)
    made["ndarray"] = {
        name: {"parameters": parameters(method)} if callable(method) else {}
        for name, method in inspect.getmembers(cupy.ndarray)
        if name[0] != "_" and hasattr(np.ndarray, name)
    }
    return made


def main():
    """Write the file."""
    OUTPUT.write_text(json.dumps(interface(), separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
