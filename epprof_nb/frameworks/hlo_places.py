"""Lines of code behind the instructions of XLA's compiled programs."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Instruction(NamedTuple):
    """An instruction of a program, as far as its text tells; None is not told."""

    op_name: str | None
    file: str | None
    line: int | None


_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = .*metadata=\{([^}]*)\}", re.MULTILINE)
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_ROW = re.compile(r"^(\d+) (.*)$", re.MULTILINE)
_FIELD = re.compile(r"(\w+)=(\d+)")


def instructions(text: str) -> dict[str, Instruction]:
    """Return the instructions of a program that have metadata, by name.

    Parameters
    ----------
    text
        An HLO module as text.

    Examples
    --------
    >>> found = instructions('''
    ... FileNames
    ... 1 "model.py"
    ...
    ... FileLocations
    ... 1 {file_name_id=1 function_name_id=1 line=4 end_line=4 column=2 end_column=9}
    ...
    ... StackFrames
    ... 1 {file_location_id=1 parent_frame_id=1}
    ...
    ...   %tanh.3 = f32[8] tanh(%x), metadata={op_name="jit(f)/tanh" stack_frame_id=1}
    ... ''')
    >>> found["tanh.3"]
    Instruction(op_name='jit(f)/tanh', file='model.py', line=4)
    """
    files = {number: value.strip('"') for number, value in _rows(text, "FileNames").items()}
    locations = {k: _fields(value) for k, value in _rows(text, "FileLocations").items()}
    frames = {k: _fields(value) for k, value in _rows(text, "StackFrames").items()}
    found = {}
    for name, metadata in _INSTRUCTION.findall(text):
        op_name, frame = _OP_NAME.search(metadata), _FRAME.search(metadata)
        of_frame = frames.get(int(frame[1]), {}) if frame else {}
        location = locations.get(of_frame.get("file_location_id", 0), {})
        file = files.get(location.get("file_name_id", 0))
        line = location.get("line") if file is not None else None
        found[name] = Instruction(op_name[1] if op_name else None, file, line)
    return found


def _rows(text: str, table: str) -> dict[int, str]:
    """Return the rows of a table at the top of the text, by number."""
    match = re.search(rf"^{table}\n((?:\d+ .*\n)*)", text, re.MULTILINE)
    return {int(number): value for number, value in _ROW.findall(match[1])} if match else {}


def _fields(text: str) -> dict[str, int]:
    return {key: int(value) for key, value in _FIELD.findall(text)}


class HloPlaces:
    """The instructions of the programs that JAX holds, read when they are asked for."""

    def __init__(self) -> None:
        # By the fingerprint of the executable: the names of its programs, and those that were read.
        self._names: dict[Any, list[str]] = {}
        self._read: dict[tuple[Any, str], list[dict[str, Instruction]]] = {}

    def of_instructions(
        self, module: str, wanted: Mapping[str, str | None]
    ) -> dict[str, tuple[str, int]]:
        """Return file and line of some instructions of one program.

        Several programs may have the same name. Those that lack one of the instructions, or have
        it with another ``op_name``, are left out, and so is an instruction whose place differs
        among the others.

        Parameters
        ----------
        module
            Name of the program.
        wanted
            ``op_name`` of the instructions, by name; None if it is not known.
        """
        programs = [
            program
            for program in self._programs(module)
            if all(_matches(program.get(name), op_name) for name, op_name in wanted.items())
        ]
        found = {}
        for name in wanted:
            places = {(of[name].file, of[name].line) if name in of else None for of in programs}
            place = places.pop() if len(places) == 1 else None
            if place is not None and place[0] is not None and place[1] is not None:
                found[name] = (place[0], place[1])
        return found

    def _programs(self, module: str) -> list[dict[str, Instruction]]:
        found = []
        for executable in live_executables():
            key = executable.fingerprint
            # Its programs are copied whenever they are asked for.
            if key is None:
                found += _read(executable.hlo_modules(), module)
                continue
            if key not in self._names:
                self._names[key] = [program.name for program in executable.hlo_modules()]
            if module in self._names[key]:
                if (key, module) not in self._read:
                    self._read[key, module] = _read(executable.hlo_modules(), module)
                found += self._read[key, module]
        return found


def _read(programs: Iterable[Any], module: str) -> list[dict[str, Instruction]]:
    """Return the instructions of the programs with this name."""
    return [instructions(program.to_string()) for program in programs if program.name == module]


def _matches(instruction: Instruction | None, op_name: str | None) -> bool:
    """Whether an instruction may be the one with this ``op_name``.

    Instructions without metadata are not in the table.
    """
    return (instruction.op_name if instruction else None) == op_name


def live_executables() -> Iterable[Any]:
    """Return the executables of JAX's default backend, if JAX is used at all."""
    jax = sys.modules.get("jax")
    if jax is None:
        return []
    try:
        clients = {id(device.client): device.client for device in jax.local_devices()}
        return [one for client in clients.values() for one in client.live_executables()]
    except (AttributeError, RuntimeError):  # another release, or a device that is lost
        return []
