"""The option ``--interleave``: the baseline's code runs again, between the repeats of the new code.

The speed of a machine drifts, so two recordings of the same code differ. The drift affects
alternating repeats alike.
"""

from __future__ import annotations

import ast
import copy
import inspect
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError

from epprof_nb.notebook.cell_transform import without_global
from epprof_nb.notebook.shell import compiler_flags
from epprof_nb.recording.statements.instrument_cell import end_of_code, instrument
from epprof_nb.recording.statements.leading_statements import length_of_head
from epprof_nb.util.format import plural

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType

    from IPython.core.interactiveshell import InteractiveShell

    from epprof_nb.notebook.baseline import Baseline
    from epprof_nb.profiles import Profile
    from epprof_nb.recording.statements.statement_registry import Cell

_codes: weakref.WeakKeyDictionary[Profile, CellCode] = weakref.WeakKeyDictionary()


@dataclass(slots=True)
class CellCode:
    """The code of a profiled cell, to run it again.

    Attributes
    ----------
    body
        The statements as parsed, without markers.
    cell
        The cell.
    lines
        Whether its statements are recorded as ops.
    first_line
        Number of lines of the cell above the parsed text.
    filename
        The name under which Python's tracebacks find the source.
    """

    body: list[ast.stmt]
    cell: Cell
    lines: bool
    first_line: int = 0
    filename: str = "<cell>"
    _used: dict[str, weakref.ref[Any]] = field(default_factory=dict)

    def remember(self, profile: Profile, variables: Mapping[str, Any]) -> None:
        """Keep the code, and the functions it calls, for as long as `profile` exists."""
        names: set[str] = set()
        own: set[str] = set()
        for node in (inner for statement in self.body for inner in ast.walk(statement)):
            if isinstance(node, ast.Name):
                (names if isinstance(node.ctx, ast.Load) else own).add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                own.add(node.name)
        for name in names - own:
            value = variables.get(name)
            if callable(value):
                try:
                    self._used[name] = weakref.ref(value)
                except TypeError:
                    continue  # not all objects have weak references
        _codes[profile] = self

    def reassigned(self, variables: Mapping[str, Any]) -> list[str]:
        """Return the names of callables that were reassigned after the code ran."""
        return sorted(name for name, ref in self._used.items() if variables.get(name) is not ref())

    def compile(self, flags: int, *, marked: bool) -> CodeType:
        """Compile the code, with markers of its statements or without."""
        body = copy.deepcopy(self.body)
        head = length_of_head(body)
        rest = without_global(body[head:])
        if marked and self.lines and rest:
            rest = instrument(rest, self.cell, first_line=self.first_line)
            rest.append(end_of_code(rest[-1]))
        tree = ast.Module([*body[:head], *rest], [])
        return compile(tree, self.filename, "exec", flags, dont_inherit=True)  # type: ignore[no-any-return]


class Interleaving:
    """The runs of a baseline's code between the repeats of the new code.

    The order changes from one pair of repeats to the next (old new new old), so that a steady drift
    and the state that one code leaves behind affect both sides alike. The last repeat runs the new
    code, so its variables and value remain.

    Parameters
    ----------
    baseline
        The baseline that the user named.
    new
        The new code.
    repeats
        Number of repeats of each side.
    shell
        IPython's shell.

    Raises
    ------
    UsageError
        If the code of the baseline cannot be run again.
    """

    def __init__(
        self, baseline: Baseline, new: CellCode, repeats: int, shell: InteractiveShell
    ) -> None:
        code = _codes.get(baseline.profiles[-1])
        self.text = baseline.text
        if code is None:
            name = self.text if self.text.isidentifier() else "old"
            raise UsageError(
                f"--interleave runs the code of {self.text} again, and {self.text} is not a "
                "profile of a cell of this kernel. The cell did not run. Run the old code first, "
                "with: "
                f"%%gpuprofile {name} --repeat {repeats}"
            )
        self.code = code
        self.sides: list[int] = []
        self._repeats = repeats
        self._shell = shell
        flags = compiler_flags(shell)
        self._plain, self._marked = (code.compile(flags, marked=marked) for marked in (False, True))
        if self._plain.co_flags & inspect.CO_COROUTINE:
            raise UsageError(
                f"--interleave cannot run the code of {self.text} again, because it has a "
                "top-level await. The cell did not run. Compare without --interleave, or call "
                "asyncio.run in both cells."
            )
        self._is_same = _text(code) == _text(new)

    def warnings(self) -> list[str]:
        """Return notes on names that the user has redefined since the baseline."""
        names = self.code.reassigned(self._shell.user_ns)
        if not names:
            return []
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        text = (
            f"{plural(len(names), 'name')} in the code of {self.text} ({self.code.cell.name}) "
            f"changed since it was recorded: {shown}. Both sides use the present value."
        )
        if self._is_same:
            text += " As the cells have the same code, no difference is measured."
        return [text]

    def runs_before(self, repeat: int) -> int:
        """Return how often the old code runs before a repeat of the new code, counted from 0."""
        # The last pair is (old, new), the one before it (new, old).
        later = self._repeats - 1 - repeat
        if later % 2:
            return 0
        return 2 if repeat else 1

    def run(self, *, marked: bool = True) -> None:
        """Run the old code in the user's namespace."""
        __tracebackhide__ = True
        code = self._marked if marked else self._plain
        exec(code, self._shell.user_global_ns, self._shell.user_ns)  # noqa: S102 - the user's code


def _text(code: CellCode) -> str:
    return "\n".join(ast.unparse(node) for node in code.body)
