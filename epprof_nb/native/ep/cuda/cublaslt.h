// cuBLASLt, opened at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace epprof::ep {

using LtHandle = struct LtHandle_*;
using LtLayout = struct LtLayout_*;
using LtOperation = struct LtOperation_*;
using LtPreference = struct LtPreference_*;

// cublasLtMatmulAlgo_t.
struct LtAlgorithm {
  uint64_t data[8];
};

// cublasLtMatmulHeuristicResult_t.
struct LtHeuristic {
  LtAlgorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

constexpr int kLtSuccess = 0;                    // CUBLAS_STATUS_SUCCESS
constexpr int kLtBatchCount = 5;                 // CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT
constexpr int kLtBatchOffset = 6;                // CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
constexpr int kLtTransposeA = 3;                 // CUBLASLT_MATMUL_DESC_TRANSA
constexpr int kLtTransposeB = 4;                 // CUBLASLT_MATMUL_DESC_TRANSB
constexpr int kLtEpilogue = 7;                   // CUBLASLT_MATMUL_DESC_EPILOGUE
constexpr int kLtBiasPointer = 8;                // CUBLASLT_MATMUL_DESC_BIAS_POINTER
constexpr int kLtEpilogueBias = 4;               // CUBLASLT_EPILOGUE_BIAS
constexpr int kLtWorkspaceBytes = 1;             // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
constexpr int kLtReductionSchemes = 3;           // CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK
constexpr uint32_t kLtReduceInComputeType = 2;   // CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
constexpr int kLtAlignments[] = {5, 6, 7, 8};    // CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES to D

struct CublasLt {
  int (*Create)(LtHandle*);
  int (*MatmulDescCreate)(LtOperation*, int compute, int scale);
  int (*MatmulDescDestroy)(LtOperation);
  int (*MatmulDescSetAttribute)(LtOperation, int attribute, const void* value, size_t bytes);
  int (*MatrixLayoutCreate)(LtLayout*, int type, uint64_t rows, uint64_t columns, int64_t leading);
  int (*MatrixLayoutDestroy)(LtLayout);
  int (*MatrixLayoutSetAttribute)(LtLayout, int attribute, const void* value, size_t bytes);
  int (*MatmulPreferenceCreate)(LtPreference*);
  int (*MatmulPreferenceDestroy)(LtPreference);
  int (*MatmulPreferenceSetAttribute)(LtPreference, int attribute, const void* value, size_t bytes);
  int (*MatmulAlgoGetHeuristic)(LtHandle, LtOperation, LtLayout a, LtLayout b, LtLayout c,
                                LtLayout d, LtPreference, int wanted, LtHeuristic*, int* found);
  int (*Matmul)(LtHandle, LtOperation, const void* alpha, const void* a, LtLayout, const void* b,
                LtLayout, const void* beta, const void* c, LtLayout, void* d, LtLayout,
                const LtAlgorithm*, void* workspace, size_t workspace_bytes, void* stream);
};

extern CublasLt cublaslt;  // valid once `open_cublaslt` has succeeded

// Opens the library. Returns an empty string or an error message. Later calls return the result of
// the first success.
std::string open_cublaslt(const char* path);

void check_cublaslt(const char* function, int status);  // throws an error message

}  // namespace epprof::ep
