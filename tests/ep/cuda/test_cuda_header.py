"""The native core's declarations of NVIDIA's libraries match installed headers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

NATIVE = ROOT / "epprof_nb" / "native"
SAME = """
#include <type_traits>
using namespace epprof::ep;
template <typename Function> struct Shape;
template <typename Result, typename... Args> struct Shape<Result (*)(Args...)> {
  static constexpr size_t sizes[] = {sizeof(Result), sizeof(Args)..., 0};
};
template <typename Ours, typename Theirs> constexpr bool same() {
  constexpr size_t n = sizeof(Shape<Ours>::sizes) / sizeof(size_t);
  if (n != sizeof(Shape<Theirs>::sizes) / sizeof(size_t)) return false;
  for (size_t i = 0; i < n; i++) if (Shape<Ours>::sizes[i] != Shape<Theirs>::sizes[i]) return false;
  return true;
}
"""
CHECKS = f"""
#include <cuda.h>
#include "ep/cuda/driver.h"
{SAME}
#define FIELD(ours, theirs) \\
  static_assert(offsetof(Copy2D, ours) == offsetof(CUDA_MEMCPY2D, theirs), #ours)
static_assert(sizeof(Copy2D) == sizeof(CUDA_MEMCPY2D), "size");
FIELD(source_x, srcXInBytes); FIELD(source_type, srcMemoryType); FIELD(source_host, srcHost);
FIELD(source_device, srcDevice); FIELD(source_array, srcArray); FIELD(source_pitch, srcPitch);
FIELD(target_x, dstXInBytes); FIELD(target_type, dstMemoryType); FIELD(target_host, dstHost);
FIELD(target_device, dstDevice); FIELD(target_array, dstArray); FIELD(target_pitch, dstPitch);
FIELD(width, WidthInBytes); FIELD(height, Height);
static_assert(kSuccess == CUDA_SUCCESS, "results");
static_assert(kNonBlocking == CU_STREAM_NON_BLOCKING, "stream");
static_assert(kDisableTiming == CU_EVENT_DISABLE_TIMING, "event");
static_assert(kPortable == CU_MEMHOSTALLOC_PORTABLE, "pinned");
static_assert(kDeviceMemory == CU_MEMORYTYPE_DEVICE, "memory");
static_assert(kMemoryType == CU_POINTER_ATTRIBUTE_MEMORY_TYPE, "pointer");
static_assert(kDeviceOrdinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "pointer");
static_assert(kMajorVersion == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, "attribute");
static_assert(kMinorVersion == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, "attribute");
static_assert(kRelaxed == CU_STREAM_CAPTURE_MODE_RELAXED, "capture");
static_assert(kThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "capture");
static_assert(kCaptureActive == CU_STREAM_CAPTURE_STATUS_ACTIVE, "capture");
static_assert(offsetof(CUlaunchConfig, hStream) == 32, "cupti/api_calls.cpp");
"""
LT_CHECKS = f"""
#include <cublasLt.h>
#include "ep/api.h"
#include "ep/cuda/cublaslt.h"
{SAME}
static_assert(sizeof(LtAlgorithm) == sizeof(cublasLtMatmulAlgo_t), "algorithm");
static_assert(sizeof(LtHeuristic) == sizeof(cublasLtMatmulHeuristicResult_t), "size");
static_assert(offsetof(LtHeuristic, workspace_bytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize), "workspace");
static_assert(offsetof(LtHeuristic, status) == offsetof(cublasLtMatmulHeuristicResult_t, state),
              "status");
static_assert(kLtSuccess == CUBLAS_STATUS_SUCCESS, "results");
static_assert(kLtBatchCount == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, "layout");
static_assert(kLtBatchOffset == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, "layout");
static_assert(kLtTransposeA == CUBLASLT_MATMUL_DESC_TRANSA, "operation");
static_assert(kLtTransposeB == CUBLASLT_MATMUL_DESC_TRANSB, "operation");
static_assert(CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1, "transposed");
static_assert(kLtEpilogue == CUBLASLT_MATMUL_DESC_EPILOGUE, "operation");
static_assert(kLtBiasPointer == CUBLASLT_MATMUL_DESC_BIAS_POINTER, "operation");
static_assert(kLtEpilogueBias == CUBLASLT_EPILOGUE_BIAS, "epilogue");
static_assert(kLtWorkspaceBytes == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, "preference");
static_assert(kLtReductionSchemes == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, "preference");
static_assert(kLtReduceInComputeType == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, "preference");
static_assert(kLtAlignments[0] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, "preference");
static_assert(kLtAlignments[3] == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, "preference");
static_assert(EP_PRODUCT_FLOAT64 == CUDA_R_64F && EP_PRODUCT_FLOAT16 == CUDA_R_16F &&
              EP_PRODUCT_BFLOAT16 == CUDA_R_16BF, "types");
"""
OLDER = {"cuStreamGetCaptureInfo_v2"}
"""Functions of all drivers, of which headers from CUDA 13 on have a newer version only."""


def header(name="cuda.h"):
    """The directory of a header, or None."""
    homes = [os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH")]
    places = [Path(home) / "include" for home in homes if home]
    places += [*Path("/usr/local").glob("cuda*/include")]
    for entry in map(Path, sys.path):
        places += [entry / "nvidia/cuda_runtime/include", *entry.glob("nvidia/cu1*/include")]
        places += [entry / "nvidia/cublas/include"]
    return next((p for p in places if (p / name).exists()), None)


def test_functions_structs_and_constants_are_those_of_the_header(tmp_path):
    found, compiler = header(), shutil.which("g++") or shutil.which("c++")
    if found is None or compiler is None:
        pytest.skip("needs cuda.h and a C++ compiler")
    source = (NATIVE / "ep/cuda/driver.cpp").read_text()
    loaded = re.findall(r'resolve\("(\w+)", d\.(\w+)\)', source)
    assert len(loaded) > 25
    exported = subprocess.run(
        [compiler, "-E", "-dD", "-x", "c++", f"-I{found}", "-"], input="#include <cuda.h>",
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    checks = [CHECKS]
    for symbol, member in loaded:
        if symbol in OLDER and not re.search(rf"\b{symbol}\b", exported):
            continue
        assert re.search(rf"\b{symbol}\b", exported), symbol
        checks.append(
            f'static_assert(same<decltype(Driver::{member}), decltype(&{symbol})>(), "{symbol}");'
        )
        # The name without a version means the newest one, which is what must be loaded.
        base = re.sub(r"_v\d+$", "", symbol)
        newest = re.search(rf"#define {base} (\w+)$", exported, re.MULTILINE)
        assert newest is None or newest[1] == symbol or symbol in OLDER
    check_syntax(tmp_path, compiler, [found], checks)


def check_syntax(folder, compiler, includes, checks):
    file = folder / "checks.cpp"
    file.write_text("\n".join(checks))
    options = [f"-I{path}" for path in (*includes, NATIVE)]
    done = subprocess.run(
        [compiler, "-std=c++17", "-fsyntax-only", *options, str(file)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_what_is_used_of_cublaslt_is_that_of_its_header(tmp_path):
    found, cuda = header("cublasLt.h"), header()
    compiler = shutil.which("g++") or shutil.which("c++")
    if found is None or cuda is None or compiler is None:
        pytest.skip("needs cublasLt.h, cuda.h and a C++ compiler")
    source = (NATIVE / "ep/cuda/cublaslt.cpp").read_text()
    loaded = re.findall(r'resolve\("(\w+)", lt\.(\w+)\)', source)
    assert len(loaded) == 12
    checks = [
        f'static_assert(same<decltype(CublasLt::{member}), decltype(&{symbol})>(), "{symbol}");'
        for symbol, member in loaded
    ]
    check_syntax(tmp_path, compiler, [found, cuda], [LT_CHECKS, *checks])
