"""Write ``recording/cupti/generated_layouts.json`` from the headers in NVIDIA's CUPTI wheels.

Every published wheel is downloaded with pip, and its headers are unpacked. A small C program that
is compiled against them prints the facts (sizes, offsets, enumerator values).
Run it when NVIDIA publishes a CUPTI release, after adding the wheel to `WHEELS`::

    python -m tests.tools.make_cupti_layouts [--cache DIR] [--check]

The cache holds one directory of headers per wheel, so it can also be given to the tests as
``EPPROF_CUPTI_HEADERS``. Needs gcc, unpacks about 150 MB, and downloads about 500 MB.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from tests.paths import ROOT

OUTPUT = ROOT / "epprof_nb" / "recording" / "cupti" / "generated_layouts.json"

CUDA_12 = """
12.0.90 12.0.146 12.1.62 12.1.105 12.2.60 12.2.131 12.2.142 12.3.52 12.3.101 12.4.99 12.4.127
12.5.39 12.5.82 12.6.37 12.6.68 12.6.80 12.8.57 12.8.90 12.9.19 12.9.79
"""
CUDA_13 = """
13.0.48 13.0.85 13.1.75 13.1.115 13.2.23 13.2.75 13.2.86 13.3.35 13.3.75 13.4.58 13.4.92 13.5.25
"""
#: Every published CUPTI wheel, oldest first. All patch releases, because from CUDA 13.0 on
#: each has an API version of its own.
WHEELS = (
    *(("nvidia-cuda-cupti-cu12", version) for version in CUDA_12.split()),
    *(("nvidia-cuda-cupti", version) for version in CUDA_13.split()),
)

#: Record: (activity kinds, family of structs). A version emits the newest of the family.
RECORDS = {
    "kernel": (("KERNEL", "CONCURRENT_KERNEL"), "CUpti_ActivityKernel"),
    "memcpy": (("MEMCPY",), "CUpti_ActivityMemcpy"),
    "memset": (("MEMSET",), "CUpti_ActivityMemset"),
    "synchronization": (("SYNCHRONIZATION",), "CUpti_ActivitySynchronization"),
    "memcpy2": (("MEMCPY2",), "CUpti_ActivityMemcpyPtoP"),
    "api": (("DRIVER", "RUNTIME", "INTERNAL_LAUNCH_API"), "CUpti_ActivityAPI"),
    "external_correlation": (("EXTERNAL_CORRELATION",), "CUpti_ActivityExternalCorrelation"),
    "overhead": (("OVERHEAD",), "CUpti_ActivityOverhead"),
    "memory2": (("MEMORY2",), "CUpti_ActivityMemory"),
    "cuda_event": (("CUDA_EVENT",), "CUpti_ActivityCudaEvent"),
}
CALLBACK_STRUCTS = ("CUpti_CallbackData", "CUpti_ResourceData", "CUpti_GraphData")
ENUMS = """
CUptiResult CUpti_ActivityKind CUpti_ActivityAttribute CUpti_ActivityFlag
CUpti_ActivityMemcpyKind CUpti_ActivityMemoryKind CUpti_ActivitySynchronizationType
CUpti_ActivityOverheadKind CUpti_ActivityObjectKind CUpti_ActivityMemoryOperationType
CUpti_ActivityMemoryPoolType CUpti_ActivityLaunchType CUpti_ChannelType
CUpti_ExternalCorrelationKind CUpti_ActivityThreadIdType CUpti_ApiCallbackSite
CUpti_CallbackDomain CUpti_CallbackIdResource CUpti_CallbackIdSync
"""
EXPANDED_TYPES = ("CUpti_ActivityObjectKindId",)
HEADERS = ("cupti_activity.h", "cupti_callbacks.h", "cupti_result.h", "cupti_version.h")
#: Counts and padding, which change with every release and have no meaning for a reader.
SENTINEL = re.compile(r"_(FORCE_INT|SIZE|COUNT)$")
#: Real names that end like sentinels.
NOT_SENTINEL = re.compile(r"_BUFFER_SIZE$|_POOL_SIZE$")

#: cuda.h needs crt/host_defines.h, which is in a separate wheel (in CUDA 12 the whole
#: compiler). No type that CUPTI's records use depends on it, so a stand-in does.
HOST_DEFINES = """
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define __host__
#define __device__
"""


class Field(NamedTuple):
    """A member as declared: dotted path and C type."""

    path: str
    ctype: str


# --- headers ------------------------------------------------------------------------------


def fetch_headers(cupti: str, version: str, cache: Path) -> Path:
    """Download one CUPTI wheel and the cuda.h of its CUDA release; return their headers' folder.

    Raises `RuntimeError` with pip's message if a wheel cannot be downloaded.
    """
    target = cache / version
    if (target / "complete").exists():
        return target
    minor = ".".join(version.split(".")[:2])
    for spec in (f"{cupti}=={version}", f"{cupti.replace('cupti', 'runtime')}=={minor}.*"):
        with tempfile.TemporaryDirectory() as folder:
            pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
            pip += ["--only-binary=:all:", "--disable-pip-version-check", "-d", folder, spec]
            done = subprocess.run(pip, capture_output=True, text=True, check=False)
            wheels = list(Path(folder).glob("*.whl"))
            if done.returncode or not wheels:
                last = (done.stderr.strip() or "pip said nothing").splitlines()[-1]
                raise RuntimeError(f"cannot download {spec} from the package index: {last}")
            with zipfile.ZipFile(wheels[0]) as archive:
                archive.extractall(target, [n for n in archive.namelist() if n.endswith(".h")])
    (target / "complete").touch()
    return target


def find_header(headers: Path, name: str) -> Path | None:
    """Return the path of one header somewhere below a folder, if it is there."""
    return next(iter(sorted(headers.rglob(name))), None)


def compiler_flags(headers: Path, scratch: Path) -> list[str]:
    """Return gcc's include flags for a folder of headers.

    Raises `FileNotFoundError` when CUPTI's headers or cuda.h are not below the folder.
    """
    flags = []
    for name in ("cupti.h", "cuda.h"):
        path = find_header(headers, name)
        if path is None:
            raise FileNotFoundError(f"{name} is not below {headers}")
        flags += ["-isystem", str(path.parent)]
    (scratch / "crt").mkdir(exist_ok=True)
    (scratch / "crt" / "host_defines.h").write_text(HOST_DEFINES)
    return [*flags, "-idirafter", str(scratch)]


def gcc(source: str, *flags: str) -> str:
    """Run gcc over a C program; return what it prints, or raise `RuntimeError` with its errors."""
    command = ["gcc", "-std=gnu11", "-w", "-x", "c", "-", *flags]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"gcc: {done.stderr.strip()}")
    return done.stdout


# --- declarations -------------------------------------------------------------------------


def closing(text: str, start: int) -> int:
    """Return the index of the brace that closes the one at ``start``."""
    depth = 0
    for i in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError("unbalanced braces")


def aggregates(text: str) -> dict[str, str]:
    """Return the bodies of all typedef'd structs, unions and enums by name."""
    found = {}
    for match in re.finditer(r"\btypedef\s+(?:struct|union|enum)\b[^;{}]*\{", text):
        end = closing(text, match.end() - 1)
        name = re.match(r"\}[^;]*?(\w+)\s*;", text[end:])
        if name:
            found[name[1]] = text[match.end() : end]
    return found


def members(body: str, types: dict[str, str], prefix: str = "") -> list[Field]:
    """Return the leaf members of a struct's body; bit-fields have no offset and are left out."""
    out: list[Field] = []
    while body := body.strip():
        nested = re.match(r"(?:struct|union)\b[^;{}]*\{", body)
        if nested:
            end = closing(body, nested.end() - 1)
            inner, (name, body) = body[nested.end() : end], body[end + 1 :].split(";", 1)
            path = f"{prefix}{name.strip()}." if name.strip() else prefix
            out += members(inner, types, path)
            continue
        declaration, body = body.split(";", 1)
        match = re.fullmatch(r"([\w\s*]+?)(\w+)\s*(\[\d+\])?\s*(:\s*\d+)?", declaration.strip())
        if match is None:
            raise ValueError(f"cannot read the declaration {declaration!r}")
        ctype, name, array, bits = match.groups()
        ctype = re.sub(r"\s*\*", "*", " ".join(ctype.split()))
        if ctype in EXPANDED_TYPES:
            out += members(types[ctype], types, f"{prefix}{name}.")
        elif not bits:
            out.append(Field(prefix + name, ctype + (array or "")))
    return out


def newest(family: str, names: set[str]) -> str:
    """Return the struct of a family with the highest number; no number counts as 1."""
    numbers = [int(m[1] or 1) for n in names if (m := re.fullmatch(family + r"(\d*)", n))]
    return family + (str(max(numbers)) if max(numbers) > 1 else "")


def documented_struct(header: str, kind: str) -> str | None:
    """Return the struct that the header names beside an activity kind's enumerator."""
    before = re.split(rf"\bCUPTI_ACTIVITY_KIND_{kind}\s*=", header)[0]
    names = re.findall(r"CUpti_Activity\w+", before[before.rfind("/**") :])
    return names[-1] if names else None


# --- one wheel ----------------------------------------------------------------------------


def probe(headers: Path) -> dict[str, Any]:
    """Return the facts of one folder of headers, all numbers from the compiler."""
    with tempfile.TemporaryDirectory() as scratch:
        flags = compiler_flags(headers, Path(scratch))
        types = aggregates(gcc("#include <cupti.h>\n", "-E", "-P", *flags))
        records = {record: newest(family, set(types)) for record, (_, family) in RECORDS.items()}
        declared = {s: members(types[s], types) for s in (*records.values(), *CALLBACK_STRUCTS)}
        names = {
            enum: [
                n
                for n in re.findall(r"(?:^|,)\s*(\w+)", types[enum])
                if not SENTINEL.search(n) or NOT_SENTINEL.search(n)
            ]
            for enum in ENUMS.split()
            if enum in types
        }
        lines = ['printf("v %d\\n", CUPTI_API_VERSION);']
        for struct, fields in declared.items():
            lines.append(f'printf("s {struct} %zu\\n", sizeof({struct}));')
            for path, _ in fields:
                value = f"offsetof({struct}, {path}), sizeof((({struct}*)0)->{path})"
                lines.append(f'printf("f {struct} {path} %zu %zu\\n", {value});')
        for enum, enumerators in names.items():
            lines += [f'printf("e {enum} {n} %d\\n", (int){n});' for n in enumerators]
        program = Path(scratch) / "probe"
        includes = "#include <stddef.h>\n#include <stdio.h>\n#include <cupti.h>\n"
        gcc(includes + "int main(void) {" + "\n".join(lines) + "}", "-o", str(program), *flags)
        told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    ctypes = {struct: dict(fields) for struct, fields in declared.items()}
    facts: dict[str, Any] = {"records": records, "structs": {}, "enums": {}}
    for line in told.splitlines():
        what, *rest = line.split()
        if what == "v":
            facts["api_version"] = int(rest[0])
        elif what == "s":
            facts["structs"][rest[0]] = {"size": int(rest[1]), "fields": {}}
        elif what == "f":
            struct, path, offset, width = rest
            entry = [int(offset), int(width), ctypes[struct][path]]
            facts["structs"][struct]["fields"][path] = entry
        else:
            facts["enums"].setdefault(rest[0], {})[rest[1]] = int(rest[2])
    found = {name: find_header(headers, name) for name in HEADERS}
    facts["sha256"] = {
        name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in found.items() if path
    }
    activity = (found["cupti_activity.h"] or Path()).read_text(errors="replace")
    facts["documented"] = {
        kind: documented_struct(activity, kind) for kinds, _ in RECORDS.values() for kind in kinds
    }
    return facts


# --- all wheels ---------------------------------------------------------------------------


def merge(wheels: list[tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
    """Merge the facts of all wheels into one table; a fact that never changed is stated once."""
    structs: dict[str, Any] = {}
    enums: dict[str, dict[str, int]] = {}
    since: dict[str, int] = {}
    changed: dict[str, dict[str, int]] = {}
    removed: dict[str, int] = {}
    versions: dict[str, Any] = {}
    provenance = []
    for wheel, version, facts in wheels:
        api, keys = facts["api_version"], {}
        for name, layout in facts["structs"].items():
            # A struct that changed under its own name becomes NAME@API_VERSION.
            same = [k for k, v in structs.items() if k.split("@")[0] == name and v == layout]
            key = same[0] if same else (f"{name}@{api}" if name in structs else name)
            if key != name and not same:
                print(f"changed under its own name: {key}", file=sys.stderr)
            structs[key], keys[name] = layout, key
        for enum, values in facts["enums"].items():
            known = enums.setdefault(enum, {})
            for name in known.keys() - values.keys():
                removed.setdefault(name, api)
            for name, value in values.items():
                if name not in known:
                    known[name] = value
                    if api > wheels[0][2]["api_version"]:
                        since[name] = api
                elif known[name] != value and value not in changed.get(name, {}).values():
                    changed.setdefault(name, {})[str(api)] = value
        entry = {
            "cuda": [".".join(version.split(".")[:2])],
            "records": {record: keys[name] for record, name in facts["records"].items()},
            "callbacks": {name: keys[name] for name in CALLBACK_STRUCTS},
        }
        old = versions.setdefault(str(api), entry)
        if {**old, "cuda": 0} != {**entry, "cuda": 0}:
            raise SystemExit(f"two layouts under API version {api}: {old} and {entry}")
        old["cuda"] = sorted({*old["cuda"], *entry["cuda"]})
        for record, (kinds, _) in RECORDS.items():
            for kind in kinds:
                told, used = facts["documented"][kind], facts["records"][record]
                if told != used:
                    note = f"{version}: {kind} is documented as {told}, taken {used}"
                    print(note, file=sys.stderr)
        provenance.append(
            {"wheel": wheel, "version": version, "api_version": api, "sha256": facts["sha256"]}
        )
    numbers = enums["CUpti_ActivityKind"]
    return {
        "about": "CUPTI's binary layouts on Linux, x86-64 and arm64, made by"
        " tests/tools/make_cupti_layouts.py from the headers of the x86-64 wheels under"
        " provenance; do not edit. A field is [offset in bytes, size in bytes, C type]."
        " versions is keyed by what cuptiGetVersion() returns."
        " enum_since: first API version with an enumerator, where not the oldest;"
        " enum_removed: first API version without it (renamed, the value stays)."
        " enum_changed: later values, by the API version that brought them.",
        "kinds": {
            record: [numbers[f"CUPTI_ACTIVITY_KIND_{kind}"] for kind in kinds]
            for record, (kinds, _) in RECORDS.items()
        },
        "versions": versions,
        "structs": structs,
        "enums": {
            enum: dict(sorted(values.items(), key=lambda item: item[1]))
            for enum, values in enums.items()
        },
        "enum_since": since,
        "enum_removed": dict(sorted(removed.items())),
        "enum_changed": changed,
        "provenance": provenance,
    }


def dump(value: Any, indent: str = "") -> str:
    """Return JSON with short containers on one line, for readable diffs."""
    flat = json.dumps(value)
    if not isinstance(value, (dict, list)) or len(flat) + len(indent) <= 98 or not value:
        return flat
    step = indent + "  "
    if isinstance(value, dict):
        rows = [f"{step}{json.dumps(k)}: {dump(v, step)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + indent + "}"
    return "[\n" + ",\n".join(step + dump(v, step) for v in value) + "\n" + indent + "]"


def main() -> int:
    """Write the table, or with ``--check`` compare it with the headers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = Path.home() / ".cache" / "epprof-nb" / "cupti-headers"
    parser.add_argument("--cache", type=Path, default=default, help="where headers are kept")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    facts = [(w, v, probe(fetch_headers(w, v, options.cache))) for w, v in WHEELS]
    text = dump(merge(facts)) + "\n"
    if options.check:
        return int(OUTPUT.read_text() != text)
    OUTPUT.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
