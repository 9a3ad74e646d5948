"""The CUPTI layout table: its loader, and its contents compared with NVIDIA's headers.

Headers come from ``EPPROF_CUPTI_HEADERS`` (a directory with one directory of headers per CUPTI
version, e.g. the cache of ``tests/tools/make_cupti_layouts.py``), from CUPTI wheels installed
beside the tests, or, in CI, from wheels downloaded for the purpose.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import platform
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from epprof_nb.recording.cupti import layouts
from epprof_nb.recording.cupti.layouts import (
    NATIVE_CALLBACKS,
    NATIVE_RECORDS,
    OPTIONAL_FIELDS,
    layout_for,
)
from tests.paths import TESTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

VERSIONS = tuple(layouts.CUDA_RELEASES)
#: Left out of the arm64 wheels' headers up to CUDA 13.0.
NOT_ON_ARM = "CUPTI_ACTIVITY_KIND_CONFIDENTIAL_COMPUTE_ROTATION"


@cache
def generator() -> ModuleType:
    """Return the generator's module: it knows the wheels and how to compile against them."""
    path = TESTS / "tools" / "make_cupti_layouts.py"
    spec = importlib.util.spec_from_file_location("make_cupti_layouts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# --- the loader ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_known_versions_are_complete(version: int) -> None:
    layout = layout_for(version)
    assert layout.api_version == version
    for record, fields in NATIVE_RECORDS:
        struct = layout.records[record]
        missing = {f for f in fields if f not in struct.fields}
        assert missing <= {f for r, f in OPTIONAL_FIELDS if r == record}
        assert struct.fields["kind"][:2] == (0, 4)
        assert all(f.offset + f.width <= struct.size for f in struct.fields.values())
    for name, fields in NATIVE_CALLBACKS:
        assert set(fields) <= set(layout.callbacks[name].fields)


def test_optional_fields_are_optional() -> None:
    for record, field in OPTIONAL_FIELDS:
        have = [field in layout_for(v).records[record].fields for v in VERSIONS]
        assert True in have
        assert False in have
        assert have == sorted(have), f"{record}.{field} went away again"


@pytest.mark.parametrize(
    ("asked", "given"), [(19, 18), (25, 24), (29, 28), (130099, 130001), (999999, VERSIONS[-1])]
)
def test_unknown_version_gets_the_nearest_lower_layout(asked: int, given: int) -> None:
    layout = layout_for(asked)
    assert layout.api_version == given
    assert layout.records == layout_for(given).records


@pytest.mark.parametrize("version", [-1, 0, 17])
def test_versions_before_cuda_12_are_refused(version: int) -> None:
    with pytest.raises(layouts.UnsupportedCuptiError) as caught:
        layout_for(version)
    told = str(caught.value)
    assert f"API version {version}," in told
    assert "CUDA 12.0" in told
    assert "pip install nvidia-cuda-cupti" in told


def test_records_keep_their_offsets_in_newer_versions() -> None:
    """Decoding an unknown newer version with the newest known layout depends on this."""
    for old, new in itertools.pairwise(VERSIONS):
        before, after = layout_for(old), layout_for(new)
        for record, fields in NATIVE_RECORDS:
            was, now = before.records[record], after.records[record]
            assert now.size >= was.size
            for field in set(fields) & set(was.fields):
                assert now.fields[field].encoded == was.fields[field].encoded
        assert after.callbacks == before.callbacks


@pytest.mark.parametrize("version", VERSIONS)
def test_packed_follows_the_documented_order(version: int) -> None:
    layout = layout_for(version)
    for packed, order, structs in (
        (layout.packed(), NATIVE_RECORDS, layout.records),
        (layout.packed_callbacks(), NATIVE_CALLBACKS, layout.callbacks),
    ):
        assert packed.dtype == np.int32
        assert packed.ndim == 1
        numbers = iter(packed.tolist())
        for name, fields in order:
            assert next(numbers) == structs[name].size
            for path in fields:
                number, field = next(numbers), structs[name].fields.get(path)
                if field is None:
                    assert number == -1
                else:
                    assert (number & 0xFFFF, number >> 16 & 0xFF) == field[:2]
                    assert number >> 24 == field.ctype.startswith("int")
        assert next(numbers, None) is None


def test_packed_carries_sign() -> None:
    names = dict(NATIVE_RECORDS)["kernel"]
    packed = layout_for(130500).packed()
    signed = {name for name, number in zip(names, packed[1:], strict=False) if number >> 24 & 1}
    assert {"gridX", "blockZ"} <= signed
    assert not signed & {"start", "end", "correlationId", "name", "registersPerThread"}


def test_kernel_struct_by_version() -> None:
    structs = {v: layout_for(v).records["kernel"].name for v in (18, 28, 130000, 130500)}
    assert structs == {
        18: "CUpti_ActivityKernel9",
        28: "CUpti_ActivityKernel9",
        130000: "CUpti_ActivityKernel10",
        130500: "CUpti_ActivityKernel13",
    }


def test_names() -> None:
    assert layouts.MEMCPY_KINDS[1] == "HtoD"
    assert layouts.MEMCPY_KINDS[10] == "PtoP"
    assert layouts.MEMORY_KINDS[2] == "pinned"
    assert layouts.SYNCHRONIZATION_TYPES[3] == "stream_synchronize"
    assert layouts.OVERHEAD_KINDS[1 << 16] == "cupti_buffer_flush"
    assert layouts.MEMORY_OPERATIONS[2] == "release"
    assert layouts.RESULTS[39] == "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
    assert layouts.RECORD_KINDS["kernel"] == (3, 10)
    assert layouts.ENUMERATORS["CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"] == 10
    assert list(layouts.RECORD_KINDS) == [record for record, _ in NATIVE_RECORDS]


def test_enumerators_never_changed_their_value() -> None:
    assert layouts._TABLES["enum_changed"] == {}


def test_every_wheel_is_in_the_table() -> None:
    known = [(entry["wheel"], entry["version"]) for entry in layouts._TABLES["provenance"]]
    assert known == list(generator().WHEELS)
    assert {entry["api_version"] for entry in layouts._TABLES["provenance"]} == set(VERSIONS)


# --- the headers --------------------------------------------------------------------------


def installed_headers() -> Iterator[Path]:
    """Yield a directory with headers for each CUPTI wheel installed in this environment."""
    roots = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    for root in sorted(roots):
        nvidia = Path(root) / "nvidia"
        if (nvidia / "cuda_cupti" / "include" / "cupti_activity.h").exists():
            yield nvidia / "cuda_cupti"
        for path in sorted(nvidia.glob("cu[0-9]*/include/cupti_activity.h")):
            yield path.parents[1]


def include_roots(headers: Path) -> list[Path]:
    """Return the folders to look for cuda.h in; CUDA 12's wheels keep it in a sibling."""
    return [headers, headers.parent / "cuda_runtime"]


def header_sets() -> tuple[list[Path], str]:
    """Return the directories of headers to check, or the reason why there are none."""
    if shutil.which("gcc") is None:
        return [], "gcc is not installed"
    named = os.environ.get("EPPROF_CUPTI_HEADERS")
    found = [p for p in sorted(Path(named).iterdir()) if p.is_dir()] if named else []
    found += installed_headers()
    if found:
        return found, ""
    if not os.environ.get("CI"):
        return [], "no CUPTI wheel installed and EPPROF_CUPTI_HEADERS not set; CI=1 downloads some"
    wheels = generator().WHEELS
    store = Path(tempfile.gettempdir()) / "epprof-cupti-headers"
    try:
        return [generator().fetch_headers(*wheels[i], store) for i in (0, len(wheels) // 2, -1)], ""
    except RuntimeError as error:
        return [], str(error)


def assertions(version: int) -> str:
    """Return C static assertions for all layouts of one version."""
    layout = layout_for(version)
    lines = [f'_Static_assert(CUPTI_API_VERSION == {version}, "CUPTI_API_VERSION");']
    for struct in (*layout.records.values(), *layout.callbacks.values()):
        name = struct.name
        lines.append(f'_Static_assert(sizeof({name}) == {struct.size}, "sizeof {name}");')
        for path, (offset, width, ctype) in struct.fields.items():
            member = f"(({name}*)0)->{path}"
            lines.append(
                f"_Static_assert(offsetof({name}, {path}) == {offset} && "
                f"sizeof({member}) == {width} && "
                f"__builtin_types_compatible_p(__typeof__({member}), {ctype}), "
                f'"{name}.{path}");'
            )
    since, removed = layouts._TABLES["enum_since"], layouts._TABLES["enum_removed"]
    for name, value in layouts.ENUMERATORS.items():
        if name == NOT_ON_ARM and platform.machine() != "x86_64":
            continue
        if since.get(name, 0) <= version < removed.get(name, sys.maxsize):
            lines.append(f'_Static_assert({name} == {value}, "{name}");')
    return "\n".join(lines)


@pytest.fixture(scope="module")
def headers() -> list[Path]:
    found, why = header_sets()
    if not found:
        pytest.skip(f"CUPTI's layouts are not checked against its headers: {why}")
    return found


def test_table_agrees_with_the_headers(headers: list[Path], tmp_path: Path) -> None:
    checked, without_cuda_h = [], []
    for folder in headers:
        texts = {p.name: p for root in include_roots(folder) for p in root.rglob("cu*.h")}
        if "cuda.h" not in texts:
            without_cuda_h.append(str(folder))
            continue
        told = re.search(
            r"#define\s+CUPTI_API_VERSION\s+(\d+)", texts["cupti_version.h"].read_text()
        )
        assert told, folder
        version = int(told[1])
        (tmp_path / "crt").mkdir(exist_ok=True)
        (tmp_path / "crt" / "host_defines.h").write_text(generator().HOST_DEFINES)
        flags = [f"-isystem{texts[name].parent}" for name in ("cupti.h", "cuda.h")]
        program = tmp_path / "check.c"
        program.write_text(f"#include <stddef.h>\n#include <cupti.h>\n{assertions(version)}\n")
        done = subprocess.run(
            ["gcc", "-std=gnu11", "-w", "-fsyntax-only", *flags, f"-idirafter{tmp_path}", program],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{folder}\n{done.stderr}"
        # A struct newer than the one in the table would be what the library emits.
        activity = texts["cupti_activity.h"].read_text(errors="replace")
        for record, (kinds, family) in generator().RECORDS.items():
            names = set(re.findall(rf"^\s*}}\s*({family}\d*);", activity, re.MULTILINE))
            name = layout_for(version).records[record].name
            assert name == generator().newest(family, names)
            for kind in kinds:
                assert name == generator().documented_struct(activity, kind)
        checked.append(version)
    if not checked:
        pytest.skip(
            "CUPTI's layouts are not checked against its headers: no cuda.h (wheel "
            f"nvidia-cuda-runtime-cu12 or nvidia-cuda-runtime) beside {without_cuda_h}"
        )
