"""The slots in the native core match ONNX Runtime's public headers.

They are listed in ``tests/data/ort_slots.json``. Where ``EPPROF_ORT_HEADERS`` names a directory
with ``onnxruntime_c_api.h`` and ``onnxruntime_ep_c_api.h`` (no wheel brings them), they are
checked against those too; tests/run_matrix.py exercises every slot on released wheels.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.paths import DATA, ROOT

FACTS = json.loads((DATA / "ort_slots.json").read_text())
NATIVE = ROOT / "epprof_nb" / "native" / "ort" / "abi.h"
HEADERS = os.environ.get("EPPROF_ORT_HEADERS")

# The native core's name of a slot or member, if it differs from the header's.
RENAMED = {
    "EventCategory": "ProfilingEvent_GetCategory",
    "EventName": "ProfilingEvent_GetName",
    "EventTimestampUs": "ProfilingEvent_GetTimestampUs",
    "EventDurationUs": "ProfilingEvent_GetDurationUs",
    "EventArgValue": "ProfilingEvent_GetArgValue",
    "AddEvents": "ProfilingEventsContainer_AddEvents",
    "HardwareDeviceType": "HardwareDevice_Type",
    "HardwareDeviceMetadata": "HardwareDevice_Metadata",
    "ValidateCompiledModel": "ValidateCompiledModelCompatibilityInfo",
}


def body(text, opening):
    """The text between the braces that follow `opening`."""
    begin = text.index("{", text.index(opening)) + 1
    depth = 1
    for end, letter in enumerate(text[begin:], begin):
        depth += (letter == "{") - (letter == "}")
        if not depth:
            return text[begin:end]
    raise AssertionError(f"{opening} does not end")


def native_slots(enum):
    found = re.findall(r"k(\w+) = (\d+)", body(NATIVE.read_text(), f"enum {enum} "))
    return {RENAMED.get(name, name): int(slot) for name, slot in found}


def native_members(struct):
    """Member names of a native struct after its version; None for each unused one."""
    text = re.sub(r"//.*", "", body(NATIVE.read_text(), f"struct {struct} {{"))
    names = []
    for statement in text.split(";"):
        if many := re.search(r"void\* unused\w*\[(\d+)\]", statement):
            names += [None] * int(many[1])
        elif member := re.search(r"\(\*(\w+)\)\(|void\* (\w+)$", statement.strip()):
            words = (member[1] or member[2]).split("_")
            name = "".join(word.capitalize() for word in words)
            names.append(RENAMED.get(name, name))
    return names


def declared(header, struct):
    """The function members of a struct of ONNX Runtime's headers, in order."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header, flags=re.DOTALL)
    members = re.findall(
        r"ORT_API2_STATUS\(\s*(\w+)"
        r"|ORT_API_T\([^,]+,\s*(\w+)"
        r"|ORT_CLASS_RELEASE\((\w+)\)"
        r"|\(ORT_API_CALL\*\s*(\w+)\)",
        body(text, f"struct {struct} {{"),
    )
    return [a or b or (f"Release{c}" if c else d) for a, b, c, d in members]


@pytest.mark.parametrize(
    ("enum", "table"), [("ApiSlot : size_t", "OrtApi"), ("EpApiSlot : size_t", "OrtEpApi")]
)
def test_the_native_slots_are_the_facts(enum, table):
    assert native_slots(enum) == FACTS[table]


@pytest.mark.parametrize(
    ("struct", "name"),
    [
        ("Allocator", "OrtAllocator"),
        ("CustomOp", "OrtCustomOp"),
        ("DataTransfer", "OrtDataTransferImpl"),
        ("Ep", "OrtEp"),
        ("EpFactory", "OrtEpFactory"),
        ("EpProfiler", "OrtEpProfilerImpl"),
        ("KernelImpl", "OrtKernelImpl"),
        ("LoopKernelHelper", "OrtLoopKernelHelper"),
        ("ScanKernelHelper", "OrtScanKernelHelper"),
        ("SyncNotificationImpl", "OrtSyncNotificationImpl"),
        ("SyncStreamImpl", "OrtSyncStreamImpl"),
    ],
)
def test_the_native_structs_are_the_facts(struct, name):
    facts = FACTS["structs"][name]
    members = native_members(struct)
    assert len(members) >= len(facts)
    assert [m for m in members if m] == [f for m, f in zip(members, facts, strict=False) if m]


def test_declarations_of_every_kind_are_counted():
    header = """
    struct Other { ORT_API2_STATUS(No); };
    struct OrtApi {
      /** \\brief ORT_API2_STATUS(NotThis, x) {*/
      OrtStatus*(ORT_API_CALL* CreateStatus)(int code, _In_ const char* msg)NO_EXCEPTION;
      ORT_API2_STATUS(Run, _Inout_ OrtSession* session); // ORT_API2_STATUS(NorThis)
      ORT_CLASS_RELEASE(Env);
      ORT_API_T(void, RunOptionsSetSyncStream, _Inout_ OrtRunOptions* options);
      ORT_API2_STATUS(
          Last);
    };
    """
    assert declared(header, "OrtApi") == [
        "CreateStatus", "Run", "ReleaseEnv", "RunOptionsSetSyncStream", "Last",
    ]  # fmt: skip


@pytest.mark.skipif(not HEADERS, reason="EPPROF_ORT_HEADERS names no directory of headers")
def test_the_facts_are_those_of_the_headers():
    c_api, ep_api = (
        (Path(HEADERS) / name).read_text() for name in ("onnxruntime_c_api.h",
                                                        "onnxruntime_ep_c_api.h")
    )  # fmt: skip
    for header, table in ((c_api, "OrtApi"), (ep_api, "OrtEpApi")):
        order = declared(header, table)
        assert {name: order.index(name) for name in FACTS[table]} == FACTS[table]
    for struct, members in FACTS["structs"].items():
        header = ep_api if f"struct {struct} {{" in ep_api else c_api
        assert declared(header, struct)[: len(members)] == members
