"""Layouts of CUPTI's activity records and callback data, by the version of the loaded library.

The native core is built without CUDA's headers: it asks here where each field lies. The facts
are in ``layouts.json``, which ``tests/tools/make_cupti_layouts.py`` takes with a compiler
from the headers of every published CUPTI wheel (its ``provenance`` names each, with hashes).
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
    """Read ``name: field field ...`` entries, one or more lines each, in order."""
    names = re.findall(r"(\w+):", text)
    fields = re.split(r"\w+:", text)[1:]
    return tuple((name, tuple(words.split())) for name, words in zip(names, fields, strict=True))


#: The order of `CuptiLayout.packed`. The native core's enums mirror it: add at the end of a
#: record's fields or of the records, in both places.
NATIVE_RECORDS: tuple[tuple[str, tuple[str, ...]], ...] = _order(
    """
    kernel:
        start end completed deviceId contextId streamId gridX gridY gridZ blockX blockY
        blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread
        registersPerThread correlationId gridId name queued submitted graphNodeId
        graphId channelID sourceGraphNodeId priority
    memcpy:
        start end bytes copyKind srcKind dstKind flags deviceId contextId streamId
        correlationId graphNodeId graphId sourceGraphNodeId
    memcpy2:
        start end bytes copyKind srcKind dstKind flags deviceId contextId streamId
        correlationId graphNodeId graphId srcDeviceId dstDeviceId
    memset:
        start end bytes value memoryKind deviceId contextId streamId correlationId
        graphNodeId graphId flags sourceGraphNodeId
    api:
        kind cbid start end processId threadId correlationId returnValue
    synchronization:
        type start end correlationId contextId streamId cudaEventId cudaEventSyncId
        returnValue
    external_correlation:
        externalKind externalId correlationId
    overhead:
        overheadKind objectKind objectId.pt.processId objectId.pt.threadId
        objectId.dcs.deviceId objectId.dcs.contextId objectId.dcs.streamId start end
        correlationId
    memory2:
        memoryOperationType memoryKind correlationId address bytes timestamp PC
        processId deviceId contextId streamId name isAsync
        memoryPoolConfig.memoryPoolType memoryPoolConfig.address
        memoryPoolConfig.utilizedSize source
    graph_trace:
        start end deviceId contextId streamId correlationId graphId endDeviceId
        endContextId
    cuda_event:
        correlationId contextId streamId eventId deviceId deviceTimestamp
        cudaEventSyncId
    """
)

#: The order of `CuptiLayout.packed_callbacks`.
NATIVE_CALLBACKS: tuple[tuple[str, tuple[str, ...]], ...] = _order(
    """
    CUpti_CallbackData:
        callbackSite functionName functionParams functionReturnValue symbolName context
        contextUid correlationData correlationId
    CUpti_ResourceData:
        context resourceHandle.stream resourceDescriptor
    CUpti_GraphData:
        graph originalGraph node originalNode nodeType dependency graphExec
    """
)

#: Fields of `NATIVE_RECORDS` that some supported version lacks; every other one is in all.
OPTIONAL_FIELDS: frozenset[tuple[str, str]] = frozenset({
    ("kernel", "priority"),  # since CUDA 13.1
    ("kernel", "sourceGraphNodeId"),  # since CUDA 13.4
    ("memcpy", "sourceGraphNodeId"),
    ("memset", "sourceGraphNodeId"),
    ("synchronization", "cudaEventSyncId"),  # since CUDA 12.8
    ("synchronization", "returnValue"),
    ("overhead", "correlationId"),  # since CUDA 12.3
    ("memory2", "source"),  # since CUDA 12.6
    ("graph_trace", "endDeviceId"),  # since CUDA 12.3
    ("graph_trace", "endContextId"),
    ("cuda_event", "deviceId"),  # since CUDA 12.8
    ("cuda_event", "deviceTimestamp"),
    ("cuda_event", "cudaEventSyncId"),
})  # fmt: skip

_SIGNED = re.compile(r"int(8|16|32|64)_t")
_SIGNED_BIT = 1 << 24


class UnsupportedCuptiError(RuntimeError):
    """The loaded CUPTI library is older than the oldest one whose layouts are known."""


class Field(NamedTuple):
    """One member of a C struct.

    Attributes
    ----------
    offset, width : int
        In bytes. An array's width is that of the whole array.
    ctype : str
        The C type as declared; enums are 4 bytes, unsigned.
    """

    offset: int
    width: int
    ctype: str

    @property
    def encoded(self) -> int:
        """The field in one ``int32``; see `CuptiLayout.packed`."""
        sign = _SIGNED_BIT if _SIGNED.fullmatch(self.ctype) else 0
        return self.offset | self.width << 16 | sign


@dataclass(frozen=True)
class Struct:
    """A C struct: its name in CUPTI, size in bytes, and fields by dotted path.

    Bit-fields have no offset and are left out. Members of nested structs and unions are
    reached by path, e.g. ``"objectId.pt.threadId"``.
    """

    name: str
    size: int
    fields: dict[str, Field]


@dataclass(frozen=True)
class CuptiLayout:
    """What one version of CUPTI writes into activity buffers and hands to callbacks.

    Attributes
    ----------
    api_version : int
        The version that the layouts are of, in ``cuptiGetVersion``'s terms.
    exact : bool
        False when the version asked for is not known and this is the nearest lower one.
        Its offsets hold, because records only grow at their end or into their padding; their
        sizes may be too small, so walk live buffers with ``cuptiActivityGetNextRecord``.
    cuda : tuple of str
        CUDA toolkit releases with this API version, e.g. ``("12.0", "12.1")``.
    records : dict of str to Struct
        By record name, as in `NATIVE_RECORDS`: the struct that this version emits.
    callbacks : dict of str to Struct
        By C name, as in `NATIVE_CALLBACKS`.
    """

    api_version: int
    exact: bool
    cuda: tuple[str, ...]
    records: dict[str, Struct]
    callbacks: dict[str, Struct]

    def packed(self) -> NDArray[np.int32]:
        """Return the records' layouts for the native decoder.

        Returns
        -------
        numpy.ndarray of int32
            For each record of `NATIVE_RECORDS`, in order: its size in bytes, then one number
            a field, in order. That number is ``offset | width << 16 | signed << 24`` (offset
            in bits 0-15, width in bytes in bits 16-23, bit 24 set for signed integers, which
            must be sign-extended), or -1 for a field that this version does not have.
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
        found = structs[name].fields
        numbers.append(structs[name].size)
        numbers += [found[f].encoded if f in found else -1 for f in fields]
    return np.array(numbers, dtype=np.int32)


_TABLES: dict[str, Any] = json.loads(
    files(__package__).joinpath("layouts.json").read_text(encoding="utf-8")
)

#: CUPTI API version -> CUDA toolkit releases that have it.
CUDA_RELEASES: dict[int, tuple[str, ...]] = {
    int(version): tuple(entry["cuda"]) for version, entry in _TABLES["versions"].items()
}

#: Record name -> activity kinds (numbers) that are written as that record.
RECORD_KINDS: dict[str, tuple[int, ...]] = {
    record: tuple(kinds) for record, kinds in _TABLES["kinds"].items()
}

#: C enumerator -> value, of every enum in the table. Values are the same in all versions.
ENUMERATORS: dict[str, int] = {
    name: value for values in _TABLES["enums"].values() for name, value in values.items()
}


def _names(enum: str, prefix: str, *, keep: bool = False) -> dict[int, str]:
    """Return value -> enumerator without its prefix, lower case unless ``keep``.

    Of two names for one value the one that the newest version has wins.
    """
    gone = _TABLES["enum_removed"]
    return {
        value: name if keep else name.removeprefix(prefix).lower()
        for name, value in _TABLES["enums"][enum].items()
        if name not in gone
    }


# Value -> name, in CUPTI's terms; what the columns of the tables are made of.
ACTIVITY_KINDS = _names("CUpti_ActivityKind", "CUPTI_ACTIVITY_KIND_")
ACTIVITY_ATTRIBUTES = _names("CUpti_ActivityAttribute", "CUPTI_ACTIVITY_ATTR_")
#: ``{0: "unknown", 1: "HtoD", 2: "DtoH", ...}``; A is a CUDA array, P a peer device.
MEMCPY_KINDS = {
    value: re.sub(r"^([hdap])to([hdap])$", lambda m: f"{m[1].upper()}to{m[2].upper()}", name)
    for value, name in _names("CUpti_ActivityMemcpyKind", "CUPTI_ACTIVITY_MEMCPY_KIND_").items()
}
MEMORY_KINDS = _names("CUpti_ActivityMemoryKind", "CUPTI_ACTIVITY_MEMORY_KIND_")
MEMORY_OPERATIONS = _names(
    "CUpti_ActivityMemoryOperationType", "CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_"
)
MEMORY_POOL_TYPES = _names("CUpti_ActivityMemoryPoolType", "CUPTI_ACTIVITY_MEMORY_POOL_TYPE_")
SYNCHRONIZATION_TYPES = _names(
    "CUpti_ActivitySynchronizationType", "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_"
)
OVERHEAD_KINDS = _names("CUpti_ActivityOverheadKind", "CUPTI_ACTIVITY_OVERHEAD_")
OBJECT_KINDS = _names("CUpti_ActivityObjectKind", "CUPTI_ACTIVITY_OBJECT_")
LAUNCH_TYPES = _names("CUpti_ActivityLaunchType", "CUPTI_ACTIVITY_LAUNCH_TYPE_")
CHANNEL_TYPES = _names("CUpti_ChannelType", "CUPTI_CHANNEL_TYPE_")
EXTERNAL_CORRELATION_KINDS = _names(
    "CUpti_ExternalCorrelationKind", "CUPTI_EXTERNAL_CORRELATION_KIND_"
)
CALLBACK_DOMAINS = _names("CUpti_CallbackDomain", "CUPTI_CB_DOMAIN_")
RESOURCE_CALLBACKS = _names("CUpti_CallbackIdResource", "CUPTI_CBID_RESOURCE_")
#: CUptiResult -> its C name, e.g. ``{15: "CUPTI_ERROR_NOT_INITIALIZED"}``.
RESULTS = _names("CUptiResult", "", keep=True)


def _struct(key: str) -> Struct:
    # A struct that changed under its own name is kept as NAME@API_VERSION.
    entry = _TABLES["structs"][key]
    fields = {path: Field(*field) for path, field in entry["fields"].items()}
    return Struct(key.partition("@")[0], entry["size"], fields)


def layout_for(api_version: int) -> CuptiLayout:
    """Return the layouts of the CUPTI library with the given version.

    Parameters
    ----------
    api_version : int
        What ``cuptiGetVersion`` returned: 18 to 28 in CUDA 12, 130000 and up (major, minor and
        patch, two digits each for the last two) since CUDA 13.0.

    Returns
    -------
    CuptiLayout
        Of that version; for one that is not known, of the newest known one below it, with
        ``exact`` False.

    Raises
    ------
    UnsupportedCuptiError
        When the version is below CUDA 12.0's.

    Notes
    -----
    Call ``cuptiGetVersion`` only where a CUDA driver (libcuda) can be loaded, and check its
    result: without one, CUPTI 13.2 crashes in it, and 13.3 to 13.5 return 999 and leave 0.
    """
    known = [version for version in CUDA_RELEASES if version <= api_version]
    if not known:
        raise UnsupportedCuptiError(
            f"The loaded CUPTI library has API version {api_version}, and GPU activity cannot "
            f"be recorded with it: record layouts are known from CUDA 12.0 (API version "
            f"{min(CUDA_RELEASES)}) on. Install the CUPTI of a CUDA 12 or 13 toolkit, e.g. "
            "'pip install nvidia-cuda-cupti-cu12' or 'pip install nvidia-cuda-cupti', whichever "
            "has the major version of the CUDA that the process uses, and restart the kernel."
        )
    version = max(known)
    entry = _TABLES["versions"][str(version)]
    return CuptiLayout(
        api_version=version,
        exact=version == api_version,
        cuda=CUDA_RELEASES[version],
        records={record: _struct(key) for record, key in entry["records"].items()},
        callbacks={name: _struct(key) for name, key in entry["callbacks"].items()},
    )
