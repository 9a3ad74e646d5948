"""The profiles that are variables of the running notebook or program."""

from __future__ import annotations

import sys

from epprof_nb.profiles import Profile


def profiles_of_notebook() -> dict[str, Profile]:
    """Return name to profile, for the variables whose names do not begin with an underscore."""
    shell = None
    if "IPython" in sys.modules:
        from IPython.core.getipython import get_ipython

        shell = get_ipython()
    variables = vars(sys.modules["__main__"]) if shell is None else shell.user_ns
    return {
        name: value
        for name, value in list(variables.items())
        if isinstance(value, Profile) and not name.startswith("_")
    }
