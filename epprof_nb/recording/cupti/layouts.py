"""Layouts of CUPTI's activity records and callback data, by CUPTI version.

The native core is built without CUDA headers and gets the offset of each field from here. The
offsets are in ``generated_layouts.json``, which ``tests/tools/make_cupti_layouts.py`` generates
with a compiler from the headers of every published CUPTI wheel (listed with hashes in
``provenance``).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = [
    "NATIVE_CALLBACKS",
    "NATIVE_RECORDS",
    "OPTIONAL_FIELDS",
    "CuptiLayout",
    "Field",
    "Struct",
    "UnsupportedCuptiError",
    "layout_for",
]


def _order(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Parse ``name: field field ...`` entries of one or more lines each, in order."""
    names = re.findall(r"(\w+):", text)
    fields = re.split(r"\w+:", text)[1:]
    return tuple((name, tuple(words.split())) for name, words in zip(names, fields, strict=True))


#: The order of `CuptiLayout.packed`. ``native/cupti/record_layout.h`` mirrors it. The first four
#: records are numbered like `epprof_nb.data.schema.ACTIVITY_KINDS`; append new ones at the end.
NATIVE_RECORDS: tuple[tuple[str, tuple[str, ...]], ...] = _order(
    """
    kernel:
        start end deviceId contextId streamId gridX gridY gridZ blockX blockY blockZ
        staticSharedMemory dynamicSharedMemory registersPerThread correlationId name
        graphNodeId graphId
    memcpy:
        start end bytes copyKind srcKind dstKind deviceId contextId streamId
        correlationId graphNodeId graphId
    memset:
        start end bytes memoryKind deviceId contextId streamId correlationId
        graphNodeId graphId
    synchronization:
        type start end correlationId contextId streamId cudaEventId cudaEventSyncId
    memcpy2:
        start end bytes copyKind srcKind dstKind deviceId contextId streamId
        correlationId graphNodeId graphId srcDeviceId dstDeviceId
    api:
        cbid start end threadId correlationId returnValue
    external_correlation:
        externalId correlationId
    overhead:
        overheadKind objectId.pt.threadId start end
    memory2:
        memoryOperationType memoryKind correlationId address bytes timestamp PC
        deviceId contextId streamId name isAsync memoryPoolConfig.memoryPoolType
        memoryPoolConfig.address memoryPoolConfig.utilizedSize source
    cuda_event:
        correlationId contextId streamId eventId deviceId deviceTimestamp
        cudaEventSyncId
    """
)

#: The order of `CuptiLayout.packed_callbacks`.
NATIVE_CALLBACKS: tuple[tuple[str, tuple[str, ...]], ...] = _order(
    """
    CUpti_CallbackData:
        callbackSite functionParams functionReturnValue context correlationData correlationId
    CUpti_ResourceData:
        context resourceHandle.stream resourceDescriptor
    CUpti_GraphData:
        graph node originalNode graphExec
    """
)

#: Fields of `NATIVE_RECORDS` that some supported versions lack.
OPTIONAL_FIELDS: frozenset[tuple[str, str]] = frozenset({
    ("synchronization", "cudaEventSyncId"),  # since CUDA 12.8
    ("memory2", "source"),  # since CUDA 12.6
    ("cuda_event", "deviceId"),  # since CUDA 12.8
    ("cuda_event", "deviceTimestamp"),
    ("cuda_event", "cudaEventSyncId"),
})  # fmt: skip

_SIGNED = re.compile(r"int(8|16|32|64)_t")
_SIGNED_BIT = 1 << 24


class UnsupportedCuptiError(RuntimeError):
    """The loaded CUPTI library is older than the oldest one with known layouts."""


class Field(NamedTuple):
    """One member of a C struct.

    Attributes
    ----------
    offset, width : int
        In bytes. The width of an array includes all elements.
    ctype : str
        The declared C type. Enums are unsigned and have 4 bytes.
    """

    offset: int
    width: int
    ctype: str

    @property
    def encoded(self) -> int:
        """The field encoded as one ``int32``; see `CuptiLayout.packed`."""
        sign = _SIGNED_BIT if _SIGNED.fullmatch(self.ctype) else 0
        return self.offset | self.width << 16 | sign


@dataclass(frozen=True)
class Struct:
    """A C struct: its name in CUPTI, size in bytes, and fields by dotted path.

    Bit-fields have no offset and are omitted. Members of nested structs and unions have a dotted
    path such as ``"objectId.pt.threadId"``.
    """

    name: str
    size: int
    fields: dict[str, Field]


@dataclass(frozen=True)
class CuptiLayout:
    """Layouts of the activity records and callback data of one CUPTI version.

    Attributes
    ----------
    api_version : int
        The version of the layouts, as returned by ``cuptiGetVersion``.
    cuda : tuple of str
        CUDA toolkit releases with this API version, such as ``("12.0", "12.1")``.
    records : dict of str to Struct
        The struct of each record in `NATIVE_RECORDS`.
    callbacks : dict of str to Struct
        The structs of `NATIVE_CALLBACKS`, by C name.
    """

    api_version: int
    cuda: tuple[str, ...]
    records: dict[str, Struct]
    callbacks: dict[str, Struct]

    def packed(self) -> NDArray[np.int32]:
        """Return the layouts of the records in the encoding of the native decoder.

        Returns
        -------
        numpy.ndarray of int32
            For each record of `NATIVE_RECORDS`, in order: its size in bytes, then one number per
            field, in order. The number is ``offset | width << 16 | signed << 24`` (offset in bits
            0-15, width in bytes in bits 16-23, bit 24 set for signed integers, which must be
            sign-extended), or -1 for a field that this version does not have.
        """
        return _pack(NATIVE_RECORDS, self.records)

    def packed_callbacks(self) -> NDArray[np.int32]:
        """Return `NATIVE_CALLBACKS` in the encoding of `packed`."""
        return _pack(NATIVE_CALLBACKS, self.callbacks)


def _pack(
    order: Iterable[tuple[str, tuple[str, ...]]], structs: dict[str, Struct]
) -> NDArray[np.int32]:
    numbers: list[int] = []
    for name, fields in order:
        known = structs[name].fields
        numbers.append(structs[name].size)
        numbers += [known[f].encoded if f in known else -1 for f in fields]
    return np.array(numbers, dtype=np.int32)


_TABLES: dict[str, Any] = json.loads(
    files(__package__).joinpath("generated_layouts.json").read_text(encoding="utf-8")
)

#: CUPTI API version -> CUDA toolkit releases with that version.
CUDA_RELEASES: dict[int, tuple[str, ...]] = {
    int(version): tuple(entry["cuda"]) for version, entry in _TABLES["versions"].items()
}

#: Record name -> activity kinds (numbers) that use the record.
RECORD_KINDS: dict[str, tuple[int, ...]] = {
    record: tuple(kinds) for record, kinds in _TABLES["kinds"].items()
}

#: C enumerator -> value, for all enums of the table. Values are the same in all versions.
ENUMERATORS: dict[str, int] = {
    name: value for values in _TABLES["enums"].values() for name, value in values.items()
}


def _names(enum: str, prefix: str, *, keep: bool = False) -> dict[int, str]:
    """Return value -> enumerator without its prefix, in lower case unless ``keep``.

    If a value has two names, the name in the newest version is used.
    """
    removed = _TABLES["enum_removed"]
    return {
        value: name if keep else name.removeprefix(prefix).lower()
        for name, value in _TABLES["enums"][enum].items()
        if name not in removed
    }


# Value -> name as in CUPTI, used in the columns of the tables.
#: ``{0: "unknown", 1: "HtoD", 2: "DtoH", ...}``; A is a CUDA array, P a peer device.
MEMCPY_KINDS = {
    value: re.sub(r"^([hdap])to([hdap])$", lambda m: f"{m[1].upper()}to{m[2].upper()}", name)
    for value, name in _names("CUpti_ActivityMemcpyKind", "CUPTI_ACTIVITY_MEMCPY_KIND_").items()
}
MEMORY_KINDS = _names("CUpti_ActivityMemoryKind", "CUPTI_ACTIVITY_MEMORY_KIND_")
MEMORY_OPERATIONS = _names(
    "CUpti_ActivityMemoryOperationType", "CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_"
)
SYNCHRONIZATION_TYPES = _names(
    "CUpti_ActivitySynchronizationType", "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_"
)
OVERHEAD_KINDS = _names("CUpti_ActivityOverheadKind", "CUPTI_ACTIVITY_OVERHEAD_")
#: CUptiResult -> its C name, e.g. ``{15: "CUPTI_ERROR_NOT_INITIALIZED"}``.
RESULTS = _names("CUptiResult", "", keep=True)


def _struct(key: str) -> Struct:
    # A struct that changed without changing its name has the key NAME@API_VERSION.
    entry = _TABLES["structs"][key]
    fields = {path: Field(*field) for path, field in entry["fields"].items()}
    return Struct(key.partition("@")[0], entry["size"], fields)


def layout_for(api_version: int) -> CuptiLayout:
    """Return the layouts of a CUPTI version.

    Parameters
    ----------
    api_version : int
        The result of ``cuptiGetVersion``: 18 to 28 in CUDA 12, 130000 and up (major, minor and
        patch, two digits each for the last two) since CUDA 13.0.

    Returns
    -------
    CuptiLayout
        The layouts of that version. If it is unknown, the layouts of the newest known version below
        it. Their offsets are valid, because records only grow at the end or into padding; the sizes
        may be too small, so walk live buffers with ``cuptiActivityGetNextRecord``.

    Raises
    ------
    UnsupportedCuptiError
        If the version is older than CUDA 12.0.

    Notes
    -----
    Call ``cuptiGetVersion`` only where a CUDA driver (libcuda) can be loaded, and check its result.
    Without a driver, the call crashes in CUPTI 13.2. In CUPTI 13.3 to 13.5 it returns 999 and sets
    the version to 0.
    """
    known = [version for version in CUDA_RELEASES if version <= api_version]
    if not known:
        raise UnsupportedCuptiError(
            f"GPU activity cannot be recorded: the loaded CUPTI library has API version "
            f"{api_version}, and the oldest supported version is {min(CUDA_RELEASES)} (CUDA 12.0). "
            "Install the CUPTI that matches the CUDA major version of this process, with "
            "'pip install nvidia-cuda-cupti-cu12' or 'pip install nvidia-cuda-cupti', and restart "
            "the kernel."
        )
    version = max(known)
    entry = _TABLES["versions"][str(version)]
    return CuptiLayout(
        api_version=version,
        cuda=CUDA_RELEASES[version],
        records={record: _struct(key) for record, key in entry["records"].items()},
        callbacks={name: _struct(key) for name, key in entry["callbacks"].items()},
    )
