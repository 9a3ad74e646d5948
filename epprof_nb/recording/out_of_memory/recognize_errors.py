"""Recognition of out-of-memory errors of devices, by the type and the message of an exception."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb.recording.out_of_memory.own_attributes import dict_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_UNITS = {
    "": 1, "b": 1, "byte": 1, "bytes": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
    "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40,
}  # fmt: skip
_SIZE = r"(?P<number>\d[\d,]*(?:\.\d+)?) ?(?P<unit>[KMGT]?i?B|[KMGT]|bytes|byte)?\b"
_REQUESTED = [
    re.compile(pattern + _SIZE, re.IGNORECASE)
    for pattern in (
        r"tried to allocate ",
        r"out of memory allocating ",
        r"(?:trying|attempting) to allocate ",
        r"requested buffer of size ",
        r"smaller than requested bytes of ",
        r"no memory left for a tensor of ",
        r"failed to allocate ",
        r"failed to allocate request for ",
        r"out of memory: ",
        r"requested +: ",
    )
]
_DEVICE = re.compile(
    r"\bGPU (\d{1,4})\b|\bGPU=(\d{1,4})\b|\bcuda:(\d{1,4})\b|\bon device (\d{1,4})\b"
)
_MOST = 2**63
_CUDA = (
    r"CUDA (?:error|failure)(?: \d+)?: out of memory|CUDA failure 2\b|cudaErrorMemoryAllocation"
    r"|CUDA_ERROR_OUT_OF_MEMORY|HIP (?:error: )?out of memory|hipErrorOutOfMemory"
)
_ALWAYS = re.compile(rf"\b(?:CUDA out of memory\b|{_CUDA})")
"""Messages that mean a device in an exception of any type, such as one of the user."""

_BY_LIBRARY = {
    "torch": re.compile(rf"out of memory|{_CUDA}|CUBLAS_STATUS_ALLOC_FAILED", re.IGNORECASE),
    "cupy": re.compile(r"out of memory|cudaErrorMemoryAllocation", re.IGNORECASE),
    "jax": re.compile(r"RESOURCE_EXHAUSTED|out of memory", re.IGNORECASE),
    "onnxruntime": re.compile(rf"Failed to allocate memory|BFCArena|out of memory|{_CUDA}"),
    "rmm": re.compile(r"out_of_memory"),
    "pycuda": re.compile(r"out of memory"),
    "numba": re.compile(rf"out of memory|{_CUDA}", re.IGNORECASE),
    "cuda": re.compile(rf"{_CUDA}"),
    "tensorflow": re.compile(r"OOM when allocating|RESOURCE_EXHAUSTED|failed to allocate"),
}
"""Messages of each library's exceptions that mean a device without memory."""

_PACKAGES = {"jaxlib": "jax", "numba_cuda": "numba", "cupy_backends": "cupy"}
_HOST_DEVICE = "the host device is out of memory: "
_IN_KERNEL = f"MemoryError: {_HOST_DEVICE}"
"""Part of ONNX Runtime's message if a kernel in Python failed with that error."""
_PROVIDER = "has no memory left for a tensor of "
"""Part of the messages of the provider of kernels in Python, on all of its devices."""

_CAUSE, _CONTEXT, _SUPPRESSES_CONTEXT = (
    vars(BaseException)[name].__get__
    for name in ("__cause__", "__context__", "__suppress_context__")
)
_EXCEPTIONS = vars(BaseExceptionGroup)["exceptions"].__get__
_BASES, _MODULE, _NAME = (
    vars(type)[name].__get__ for name in ("__mro__", "__module__", "__name__")
)
"""Attributes of classes without the code of their metaclasses."""

_KEPT = 50_000
"""Characters of the begin and of the end of a message that are read."""

ON_HOST = -1
"""Number of the host device."""


class AllocationError(NamedTuple):
    """An out-of-memory error.

    Attributes
    ----------
    error
        The exception. Nothing may keep it.
    library
        Library whose allocation failed: ``"torch"``, ``"cupy"``, ``"jax"``, ``"onnxruntime"``,
        ``"host"`` for the host device, the package of another library, or ``""``.
    requested
        Bytes that were requested, as far as the message says; rounded as there. None if unknown.
    device
        Number of the CUDA device, or `ON_HOST`; None if unknown.
    """

    error: BaseException
    library: str
    requested: int | None
    device: int | None


def allocation_error(error: BaseException) -> AllocationError | None:
    """Return the out-of-memory error that an exception is, wraps, or was raised after.

    The chain is the one in the traceback that Python prints: causes, contexts that are not
    suppressed, and the members of groups. An error of a library precedes one that only quotes its
    message.

    Examples
    --------
    >>> found = allocation_error(RuntimeError("CUDA error: out of memory on cuda:1"))
    >>> found.library, found.requested, found.device
    ('', None, 1)
    >>> allocation_error(MemoryError("Unable to allocate 8.00 TiB for an array"))
    """
    quoted = None
    for member in chain(error):
        texts = message_of(member), provider_note(member)
        library = next(
            (name for text in texts if (name := _library(member, text)) is not None), None
        )
        if library is None or (quoted is not None and not library):
            continue
        sizes, devices = map(requested_bytes, texts), map(_device, texts)
        requested = next((nbytes for nbytes in sizes if nbytes is not None), None)
        device = next((number for number in devices if number is not None), None)
        found = AllocationError(member, library, requested, device)
        if library:
            return found
        quoted = found
    return quoted


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, and those that Python prints with it, the outermost first."""
    waiting, seen = deque([error]), set()
    while waiting:
        member = waiting.popleft()
        if id(member) in seen:
            continue
        seen.add(id(member))
        yield member
        # Attributes of the base classes: classes of users may replace them by code.
        if issubclass(type(member), BaseExceptionGroup):
            waiting += _EXCEPTIONS(member)
        cause, context = _CAUSE(member), _CONTEXT(member)
        if cause is not None:
            waiting.append(cause)
        elif context is not None and not _SUPPRESSES_CONTEXT(member):
            waiting.append(context)


def requested_bytes(message: str) -> int | None:
    """Return the number of bytes that a message says were requested; None without one.

    Examples
    --------
    >>> requested_bytes("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ...")
    2147483648
    >>> requested_bytes("Out of memory while trying to allocate 8.00G.")
    8589934592
    >>> requested_bytes("Out of memory allocating 8,000 bytes (allocated so far: 512 bytes).")
    8000
    """
    for pattern in _REQUESTED:
        found = pattern.search(message)
        if found:
            scale = _UNITS[(found["unit"] or "").lower()]
            nbytes = float(found["number"].replace(",", "")) * scale
            return round(nbytes) if nbytes < _MOST else None
    return None


def _library(error: BaseException, message: str) -> str | None:
    """Return the library that raised an out-of-memory error; "" if unknown, None for others."""
    packages = [_package(kind) for kind in _BASES(type(error))]
    is_raised = issubclass(type(error), MemoryError) and message.startswith(_HOST_DEVICE)
    if is_raised or ("onnxruntime" in packages and _IN_KERNEL in message):
        return "host"
    if _PROVIDER in message:
        return "onnxruntime"
    for kind, package in zip(_BASES(type(error)), packages, strict=True):
        library = _PACKAGES.get(package, package)
        if library == "torch" and class_name(kind) == "OutOfMemoryError":
            return library
        pattern = _BY_LIBRARY.get(library)
        if pattern is not None and pattern.search(message):
            return library
    if not _ALWAYS.search(message):
        return None
    # torch raises these as RuntimeError, too; its exceptions alone add this advice.
    return "torch" if "CUDA kernel errors might be asynchronously reported" in message else ""


def class_name(kind: type) -> str:
    """Return the name of a class without the code of its metaclass."""
    name: str = _NAME(kind)
    return name


def _package(kind: type) -> str:
    try:
        module = _MODULE(kind)
    except AttributeError:  # a class may lack it
        return ""
    return module.split(".")[0] if type(module) is str else ""


def _device(message: str) -> int | None:
    if (
        message.startswith(_HOST_DEVICE)
        or _IN_KERNEL in message
        or f"the host device {_PROVIDER}" in message
    ):
        return ON_HOST
    found = _DEVICE.search(message)
    return None if found is None else int(next(n for n in found.groups() if n is not None))


def message_of(error: BaseException) -> str:
    """Return the message of an exception, without the middle of a long one; "" if it has none."""
    try:
        return _without_middle(str(error))
    except BaseException:  # noqa: BLE001 - exceptions of others may raise anything here
        return ""


def provider_note(error: BaseException) -> str:
    """Return the note that the provider of kernels in Python added to an exception; "" for none."""
    notes = (dict_of(error) or {}).get("__notes__")
    if type(notes) is list:
        for note in notes:
            if type(note) is str and (_PROVIDER in note or _IN_KERNEL in note):
                return _without_middle(note)
    return ""


def _without_middle(text: str) -> str:
    """Return the begin, which has the reason, and the end, which may have a traceback."""
    if len(text) <= 2 * _KEPT:
        return text
    return f"{text[:_KEPT]}\n{text[-_KEPT:]}"
