"""The profiles that are variables of the running notebook or program."""

from __future__ import annotations

import sys

from epprof_nb.profiles import Profile


def profiles_of_notebook() -> dict[str, Profile]:
    """Return the profiles by name, for variables whose names do not begin with an underscore.

    The baseline of a profile (``--interleave``) follows it, as ``new.baseline``.
    """
    shell = None
    if "IPython" in sys.modules:
        from IPython.core.getipython import get_ipython

        shell = get_ipython()
    variables = vars(sys.modules["__main__"]) if shell is None else shell.user_ns
    found: dict[str, Profile] = {}
    for name, value in list(variables.items()):
        if isinstance(value, Profile) and not name.startswith("_"):
            found[name] = value
            if value.baseline is not None:
                found[f"{name}.baseline"] = value.baseline
    return found
