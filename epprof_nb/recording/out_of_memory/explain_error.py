"""Explanation of an out-of-memory error in numbers and names, which keeps no objects of the user.

It is made while the exception still exists, because its traceback may hold most of the memory.
"""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.data.out_of_memory_explanation import Explanation, FreeMemory, Pool
from epprof_nb.recording.out_of_memory import torch_failures
from epprof_nb.recording.out_of_memory.device_arrays import HOST
from epprof_nb.recording.out_of_memory.hidden_values import hidden_values
from epprof_nb.recording.out_of_memory.memory_by_library import (
    DeviceMemory,
    device_memory,
    other_pools,
    torch_pool,
)
from epprof_nb.recording.out_of_memory.recognize_errors import (
    ON_HOST,
    allocation_error,
    chain,
    class_name,
    message_of,
    provider_note,
)
from epprof_nb.recording.out_of_memory.traceback_lines import (
    frames_of,
    is_own,
    place_in_kernel,
    place_of,
    program_of,
    running_frames,
    short_file,
    users_frames,
    users_modules,
)
from epprof_nb.recording.out_of_memory.variables import Root, Search, frame_variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from epprof_nb.recording.out_of_memory.recognize_errors import AllocationError
    from epprof_nb.recording.out_of_memory.torch_failures import FailedAllocation
    from epprof_nb.recording.out_of_memory.torch_pool import TorchPool

_ARGS = vars(BaseException)["args"].__get__
_OUTPUTS = ("Out", "_oh", "_", "__", "___")
"""Names by which IPython keeps the outputs of cells."""
_MOST_CALLERS = 3
"""Maximum number of innermost lines of the user in an explanation, besides the outermost one."""
TORCH, HOST_DEVICE = "torch", "host device"


def explain(
    error: BaseException,
    variables: Mapping[str, object] | None = None,
    *,
    failures_before: int = 0,
) -> Explanation | None:
    """Explain an out-of-memory error; None for other errors.

    Parameters
    ----------
    error
        The exception, with its traceback.
    variables
        Variables of the notebook; without one, the variables of ``__main__``.
    failures_before
        Value of `torch_failures.failures` before the code ran.
    """
    found = allocation_error(error)
    if found is None:
        return None
    was_collecting = gc.isenabled()
    gc.disable()  # the garbage of the user goes when it would go without this
    try:
        return _explained(error, found, variables, failures_before)
    finally:
        if was_collecting:
            gc.enable()


def _explained(
    error: BaseException,
    found: AllocationError,
    variables: Mapping[str, object] | None,
    failures_before: int,
) -> Explanation:
    made = Explanation(_device_name(found), found.library, found.requested)
    program = program_of(_frames_of_all(error))
    users = users_frames(frames_of(found.error.__traceback__), program)
    if users:
        frames = [*users[:1], *users[-_MOST_CALLERS:]]
        asked = [place_of(*pair) for pair in reversed(frames)]
        if found.library in ("host", "onnxruntime"):
            quoted = f"{message_of(found.error)}\n{provider_note(found.error)}"
            kernel = place_in_kernel(quoted, program)
            asked = [kernel, *asked] if kernel else asked
        made.requested_at = asked[0]
        made.called_at = list(dict.fromkeys(one for one in asked if one != asked[0]))
    if found.error is not error:
        made.raised_as = class_name(type(error))
    pool = None
    if found.library == "host":
        _of_host_device(made)
    elif found.device != ON_HOST:  # else the memory of the machine, which no limit divides
        pool = _of_cuda_device(made, found, failures_before)
    modules = [(f"in `{short_file(file)}`", values) for file, values in users_modules(program)]
    places = {
        name: where for where, values in modules if type(name := values.get("__name__")) is str
    }
    device = HOST if found.device == ON_HOST else made.device
    search = Search(device, {**places, "__main__": ""})
    try:
        _search(search, error, variables, modules, program)
        made.holders = search.holders()
        made.is_complete = search.is_complete
        if pool is not None:
            _match_blocks(made, pool, search)
    finally:
        search.close()
    made.chained = sum(member.__traceback__ is not None for member in chain(error))
    return made


def _device_name(found: AllocationError) -> str:
    if found.device == ON_HOST:
        return HOST_DEVICE
    if found.device is not None:
        return f"cuda:{found.device}"
    number = 0
    with suppress(Exception):
        if found.library == "cupy":
            number = sys.modules["cupy"].cuda.runtime.getDevice()
        elif found.library == "torch":
            number = sys.modules["torch"].cuda.current_device()
    return f"cuda:{number}"


# -- the memory of the device


def _of_host_device(made: Explanation) -> None:
    from epprof_nb import host
    from epprof_nb.host.memory import last_refusal

    info, refusal = host.memory_info(), last_refusal()
    limit, used = info.limit, info.used
    if refusal is not None and _is_about(refusal.requested, made.requested):
        made.requested, used, limit = refusal
        made.released = max(used - info.used, 0)
    made.limit = made.total = limit
    free = max(limit - used, 0)
    made.free = FreeMemory(free, free, 1)
    made.pools = [Pool(HOST_DEVICE, used, used)]


def _of_cuda_device(
    made: Explanation, found: AllocationError, failures_before: int
) -> TorchPool | None:
    """Add the memory of a CUDA device and return torch's, which is None if torch has none."""
    number = int(made.device.removeprefix("cuda:"))
    failure = _failure(found, number, failures_before)
    now = torch_pool(number)
    pool = (failure and failure.pool) or now
    device = device_memory(number)
    if device is not None:
        made.limit = made.total = device.total
    if failure is not None:
        made.requested, made.limit = failure.requested, failure.limit
        device = DeviceMemory(device.total if device else failure.limit, failure.device_free)
        if failure.pool is None:
            when = "was not read" if now is None else "was read after the code had ended"
            made.notes.append(f"torch's memory {when}, because {failure.reason}.")
    if pool is not None:
        made.pools.append(Pool(TORCH, pool.in_use, pool.held))
        made.waiting = pool.waiting
        if pool.reason:
            made.notes.append(pool.reason)
        if now is not None and failure is not None and failure.pool is not None:
            made.released = max(pool.in_use - now.in_use, 0)
    others = other_pools(number)
    made.pools += others
    if device is not None:
        made.rest = max(device.total - device.free - sum(p.held for p in made.pools), 0)
        made.free = _free(made, device, pool, found.library)
    return pool


def _free(
    made: Explanation, device: DeviceMemory, pool: TorchPool | None, library: str
) -> FreeMemory:
    """Return the free memory that the library whose allocation failed could use."""
    if library != TORCH or pool is None:
        own = next((p for p in made.pools if p.library.lower() == library), None)
        cached = 0 if own is None else own.held - own.in_use
        return FreeMemory(device.free + cached, None if cached else device.free)
    from_driver = max(min(device.free, (made.limit or device.total) - pool.held), 0)
    if pool.free_blocks is None:
        return FreeMemory(from_driver + pool.held - pool.in_use)
    largest = max([from_driver, *pool.free_blocks[:1]])
    pieces = len(pool.free_blocks) + (from_driver > 0)
    return FreeMemory(from_driver + sum(pool.free_blocks), largest, pieces)


def _failure(found: AllocationError, device: int, failures_before: int) -> FailedAllocation | None:
    """Return what the observer saw of an error; None if it is not the failure that it saw last."""
    last = torch_failures.last_failure()
    if found.library != TORCH or last is None or last.number <= failures_before:
        return None
    is_same = _is_about(last.requested, found.requested) and last.device == device
    return last if is_same else None


def _is_about(requested: int, says: int | None) -> bool:
    """Whether a request equals the number in a message, which has three digits, as 2.00 GiB."""
    return says is None or abs(requested - says) <= 0.006 * says


def _match_blocks(made: Explanation, pool: TorchPool, search: Search) -> None:
    """Compare what was found with torch's blocks."""
    if not len(pool.addresses):
        return
    found = np.array(sorted(search.addresses), np.int64)
    row = np.searchsorted(pool.addresses, found, side="right") - 1
    inside = (row >= 0) & (found < pool.addresses[row] + pool.sizes[row])
    matched = np.unique(row[inside])
    held = int(pool.sizes[matched].sum())
    made.unheld = max(pool.in_use - held - made.released, 0)


# -- the holders


def _search(
    search: Search,
    error: BaseException,
    variables: Mapping[str, object] | None,
    modules: list[tuple[str, dict[str, Any]]],
    program: str,
) -> None:
    """Follow variables, then outputs and then the traceback: each has what those before lack."""
    names = sys.modules["__main__"].__dict__ if variables is None else variables
    hidden: Mapping[str, object] = {}
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get_shell() if get_shell else None
    if shell is not None:
        hidden = shell.user_ns_hidden
        search.ignore(shell, names, hidden, names.get("Out"))
    search.follow(
        Root(name, value, "variable")
        for name, value in list(names.items())
        if type(name) is str  # `globals()[1] = 2` is possible
        and not name.startswith("_")
        and name not in hidden
        and name not in (*_OUTPUTS, "In")
    )
    search.follow(_of_modules(modules))
    search.follow(_running(program))
    search.follow(hidden_values(program))
    search.follow(_of_outputs(names, hidden))
    search.follow(_of_traceback(error, program))
    objects = gc.get_objects()
    arrays = search.arrays_among(objects)
    frames = [one for one in _native.instances_of(objects, FrameType) if not is_own(one)]
    del objects  # it would hold the dictionaries of frames, see `frame_variables`
    search.follow(_of_earlier(frames, error, program))
    search.follow(Root("", array, "object") for array in arrays)


def _of_modules(modules: list[tuple[str, dict[str, Any]]]) -> Iterator[Root]:
    for where, attributes in modules:
        for name, value in list(attributes.items()):
            if type(name) is str and not name.startswith("__"):
                yield Root(name, value, "variable", where)


def _of_outputs(names: Mapping[str, object], hidden: Mapping[str, object]) -> Iterator[Root]:
    """Yield the outputs of cells; IPython has the last ones twice, also after ``%reset out``."""
    outputs = names.get("Out")
    if isinstance(outputs, dict):
        for number, value in list(outputs.items()):
            yield Root(f"Out[{number}]", value, "output")
    for name in ("_", "__", "___"):
        yield Root(name, names.get(name), "output")
        yield Root(name, hidden.get(name), "output")


def _running(program: str) -> Iterator[Root]:
    """Yield the variables of functions of the user that still run, on any thread."""
    for frame, line in users_frames(running_frames(), program):
        place = place_of(frame, line)
        where = f"in `{place.function}` ({place.file}:{line})"
        for name, value in frame_variables(frame).items():
            yield Root(name, value, "variable", where)


def _frames_of_all(error: BaseException) -> list[tuple[FrameType, int]]:
    return [pair for member in chain(error) for pair in frames_of(member.__traceback__)]


def _of_traceback(error: BaseException, program: str) -> Iterator[Root]:
    """Yield the variables in the frames of an error, the user's functions first."""
    frames = _frames_of_all(error)
    users = users_frames(frames, program)
    ids = {id(frame) for frame, _ in users}
    for frame, line in (*users, *(pair for pair in frames if id(pair[0]) not in ids)):
        file = short_file(frame.f_code.co_filename)
        for name, value in frame_variables(frame).items():
            where = f"in `{frame.f_code.co_name}` ({file}:{line})"
            yield Root(name, value, "traceback", where)
    for member in chain(error):
        yield Root("args", _ARGS(member), "traceback", f"of {class_name(type(member))}")


def _of_earlier(frames: list[FrameType], error: BaseException, program: str) -> Iterator[Root]:
    """Yield the variables of functions of the user that have ended, which earlier errors keep."""
    seen = {id(frame) for frame, _ in (*running_frames(), *_frames_of_all(error))}
    ended = [(frame, frame.f_lineno) for frame in frames if id(frame) not in seen]
    for frame, line in users_frames(ended, program):
        place = place_of(frame, line)
        where = f"in `{place.function}` ({place.file}:{line}), which an earlier error keeps"
        for name, value in frame_variables(frame).items():
            yield Root(name, value, "earlier", where)
