#include "ep/cuda/cublaslt.h"

#include <mutex>
#include <stdexcept>

#include "core/dynamic_library.h"

namespace epprof::ep {

CublasLt cublaslt{};

namespace {

std::mutex library_mutex;
bool opened;

}  // namespace

std::string open_cublaslt(const char* path) {
  std::lock_guard lock(library_mutex);
  if (opened) return "";
  DynamicLibrary resolve(path, RTLD_LOCAL);
  if (!resolve.handle) return dlerror();
  CublasLt lt{};
  resolve("cublasLtCreate", lt.Create);
  resolve("cublasLtMatmulDescCreate", lt.MatmulDescCreate);
  resolve("cublasLtMatmulDescDestroy", lt.MatmulDescDestroy);
  resolve("cublasLtMatmulDescSetAttribute", lt.MatmulDescSetAttribute);
  resolve("cublasLtMatrixLayoutCreate", lt.MatrixLayoutCreate);
  resolve("cublasLtMatrixLayoutDestroy", lt.MatrixLayoutDestroy);
  resolve("cublasLtMatrixLayoutSetAttribute", lt.MatrixLayoutSetAttribute);
  resolve("cublasLtMatmulPreferenceCreate", lt.MatmulPreferenceCreate);
  resolve("cublasLtMatmulPreferenceDestroy", lt.MatmulPreferenceDestroy);
  resolve("cublasLtMatmulPreferenceSetAttribute", lt.MatmulPreferenceSetAttribute);
  resolve("cublasLtMatmulAlgoGetHeuristic", lt.MatmulAlgoGetHeuristic);
  resolve("cublasLtMatmul", lt.Matmul);
  if (!resolve.missing.empty()) {
    return std::string(path) + " has no function " + resolve.missing;
  }
  cublaslt = lt;
  opened = true;
  return "";
}

void check_cublaslt(const char* function, int status) {
  if (status == kLtSuccess) return;
  throw std::runtime_error(std::string(function) + " failed with status " +
                           std::to_string(status));
}

}  // namespace epprof::ep
