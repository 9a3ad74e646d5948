"""Lines of code behind the instructions of XLA's compiled programs."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Instruction(NamedTuple):
    """An instruction of a program; None where the program's text lacks a value."""

    op_name: str | None
    file: str | None
    line: int | None


_COMPUTATION = re.compile(r"(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"\s+(?:ROOT )?%?([\w.\-]+) = ")
_METADATA = re.compile(r"metadata=\{([^}]*)\}")
_CALLED = re.compile(r"calls=%?([\w.\-]+)")
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_ROW = re.compile(r"^(\d+) (.*)$", re.MULTILINE)
_FIELD = re.compile(r"(\w+)=(\d+)")


def instructions(text: str) -> dict[str, Instruction]:
    """Return the instructions of a program, by name.

    A fusion without its own line gets the line of its instructions, if they share one.

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
    place_of_frame = _frames(text)
    found: dict[str, Instruction] = {}
    in_computation: dict[str, set[tuple[str, int]]] = {}
    places: set[tuple[str, int]] = set()
    for line in text.splitlines():
        if begin := _COMPUTATION.match(line):
            places = in_computation.setdefault(begin[1], set())
        match = _INSTRUCTION.match(line)
        if match is None:
            continue
        metadata = _METADATA.search(line)
        attributes = metadata[1] if metadata else ""
        op_name, frame = _OP_NAME.search(attributes), _FRAME.search(attributes)
        place = place_of_frame.get(int(frame[1])) if frame else None
        if place is not None:
            places.add(place)
        elif called := _CALLED.search(line):
            # A computation precedes the instruction that calls it.
            inside = in_computation.get(called[1], set())
            place = next(iter(inside)) if len(inside) == 1 else None
        found[match[1]] = Instruction(op_name[1] if op_name else None, *(place or (None, None)))
    return found


def _frames(text: str) -> dict[int, tuple[str, int]]:
    """Return file and line of each stack frame, by number."""
    files = {number: value.strip('"') for number, value in _rows(text, "FileNames").items()}
    places = {}
    for number, value in _rows(text, "FileLocations").items():
        location = _fields(value)
        file = files.get(location.get("file_name_id", 0))
        if file is not None and "line" in location:
            places[number] = (file, location["line"])
    frames = {k: _fields(value) for k, value in _rows(text, "StackFrames").items()}
    return {
        number: places[frame["file_location_id"]]
        for number, frame in frames.items()
        if frame.get("file_location_id") in places
    }


def _rows(text: str, table: str) -> dict[int, str]:
    """Return the rows of a table at the top of the text, by number."""
    match = re.search(rf"^{table}\n((?:\d+ .*\n)*)", text, re.MULTILINE)
    return {int(number): value for number, value in _ROW.findall(match[1])} if match else {}


def _fields(text: str) -> dict[str, int]:
    return {key: int(value) for key, value in _FIELD.findall(text)}


class HloLines:
    """The instructions of the programs that JAX holds, read on first access."""

    def __init__(self) -> None:
        # By fingerprint of the executable: the names of its programs, and the programs read so far.
        self._names: dict[Any, list[str]] = {}
        self._read: dict[tuple[Any, str], list[dict[str, Instruction]]] = {}

    def of_instructions(
        self, module: str, wanted: Mapping[str, str | None]
    ) -> dict[str, tuple[str, int]]:
        """Return file and line of some instructions of one program.

        Several programs may have the same name. A program is ignored if it lacks one of the
        instructions or if an ``op_name`` begins differently. If an instruction's place differs
        among the remaining programs, the instruction is omitted.

        Parameters
        ----------
        module
            Name of the program.
        wanted
            Beginning of the ``op_name`` of the instructions, by name; None if it is not known.
        """
        held = self._programs(module)
        # A program's text does not contain command buffers.
        known = {n: op_name for n, op_name in wanted.items() if any(n in of for of in held)}
        programs = [
            program
            for program in held
            if all(_matches(program.get(name), op_name) for name, op_name in known.items())
        ]
        found = {}
        for name in known:
            places = {(of[name].file, of[name].line) for of in programs}
            file, line = places.pop() if len(places) == 1 else (None, None)
            if file is not None and line is not None:
                found[name] = (file, line)
        return found

    def _programs(self, module: str) -> list[dict[str, Instruction]]:
        found = []
        for executable in live_executables():
            key = executable.fingerprint
            # Each access copies the executable's programs.
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
    """Whether a range with this ``op_name`` may be of an instruction.

    The range of a fusion has the common prefix of the names in it, if any.
    """
    if instruction is None:
        return False
    return op_name is None or (instruction.op_name or op_name).startswith(op_name)


def live_executables() -> Iterable[Any]:
    """Return the executables of JAX's default backend, if JAX is used at all."""
    jax = sys.modules.get("jax")
    if jax is None:
        return []
    try:
        clients = {id(device.client): device.client for device in jax.local_devices()}
        return [one for client in clients.values() for one in client.live_executables()]
    except (AttributeError, RuntimeError):  # another release, or a lost device
        return []
