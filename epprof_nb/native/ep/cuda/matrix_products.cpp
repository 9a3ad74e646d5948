// Products of matrices by cuBLASLt, with everything but the addresses prepared.
#include <string.h>

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "ep/api.h"
#include "ep/cuda/cublaslt.h"
#include "ep/cuda/driver.h"

using namespace epprof::ep;

namespace {

// Alignment for tensor cores and vector loads. Arrays with less alignment are not multiplied here.
constexpr uint32_t kAlignment = EP_PRODUCT_ALIGNMENT;

// One per device, never destroyed, because sessions that outlive the interpreter use it.
LtHandle handle_of(int device) {
  if (!cublaslt.Create) throw std::runtime_error("cuBLASLt is not open");
  if (!device_count()) throw std::runtime_error("NVIDIA's driver is not open");
  static std::mutex& mutex = *new std::mutex;
  static auto& handles = *new std::map<int, LtHandle>;
  std::lock_guard lock(mutex);
  LtHandle& handle = handles[device];
  if (!handle) {
    DuringCaptures harmless;
    check_cublaslt("cublasLtCreate", cublaslt.Create(&handle));
  }
  return handle;
}

// A number in the scale type of cuBLASLt.
struct Scalar {
  union {
    float single;
    double wide;
  };

  Scalar(int type, double value) {
    if (type == EP_PRODUCT_FLOAT64) {
      wide = value;
    } else {
      single = float(value);
    }
  }
};

struct Layout {
  LtLayout layout = nullptr;

  Layout(int type, int64_t rows, int64_t columns, int64_t leading, int32_t batch, int64_t step) {
    check_cublaslt("cublasLtMatrixLayoutCreate",
                   cublaslt.MatrixLayoutCreate(&layout, type, uint64_t(rows), uint64_t(columns),
                                               leading));
    set(kLtBatchCount, batch);
    set(kLtBatchOffset, step);
  }
  ~Layout() { cublaslt.MatrixLayoutDestroy(layout); }
  Layout(const Layout&) = delete;

 private:
  template <typename Value>
  void set(int attribute, Value value) {
    check_cublaslt("cublasLtMatrixLayoutSetAttribute",
                   cublaslt.MatrixLayoutSetAttribute(layout, attribute, &value, sizeof value));
  }
};

struct Operation {
  LtOperation operation = nullptr;

  Operation(int compute, int scale) {
    check_cublaslt("cublasLtMatmulDescCreate",
                   cublaslt.MatmulDescCreate(&operation, compute, scale));
  }
  ~Operation() { cublaslt.MatmulDescDestroy(operation); }
  Operation(const Operation&) = delete;

  template <typename Value>
  int set(int attribute, Value value) {
    return cublaslt.MatmulDescSetAttribute(operation, attribute, &value, sizeof value);
  }
};

struct Preference {
  LtPreference preference = nullptr;

  Preference() {
    check_cublaslt("cublasLtMatmulPreferenceCreate",
                   cublaslt.MatmulPreferenceCreate(&preference));
  }
  ~Preference() { cublaslt.MatmulPreferenceDestroy(preference); }
  Preference(const Preference&) = delete;

  template <typename Value>
  void set(int attribute, Value value) {
    check_cublaslt("cublasLtMatmulPreferenceSetAttribute",
                   cublaslt.MatmulPreferenceSetAttribute(preference, attribute, &value,
                                                         sizeof value));
  }
};

Layout operand(const ep_product_spec& spec, const ep_operand& matrix, int64_t rows,
               int64_t columns) {
  return {spec.type, matrix.transposed ? columns : rows, matrix.transposed ? rows : columns,
          matrix.leading, spec.batch, matrix.step};
}

}  // namespace

struct ep_product {
  explicit ep_product(const ep_product_spec& spec)
      : handle(handle_of(spec.device)),
        operation(spec.compute, spec.scale),
        a(operand(spec, spec.a, spec.rows, spec.depth)),
        b(operand(spec, spec.b, spec.depth, spec.columns)),
        result(spec.result_type, spec.rows, spec.columns, spec.rows, spec.batch,
               spec.rows * spec.columns),
        alpha(spec.scale, spec.alpha),
        beta(spec.scale, spec.beta),
        has_bias(spec.has_bias != 0) {
    check_cublaslt("cublasLtMatmulDescSetAttribute",
                   operation.set(kLtTransposeA, int32_t(spec.a.transposed)));
    check_cublaslt("cublasLtMatmulDescSetAttribute",
                   operation.set(kLtTransposeB, int32_t(spec.b.transposed)));
    if (!has_bias) return;
    check_cublaslt("cublasLtMatmulDescSetAttribute",
                   operation.set(kLtEpilogue, int32_t(kLtEpilogueBias)));
    // Any address, so that an algorithm for a bias is chosen.
    check_cublaslt("cublasLtMatmulDescSetAttribute",
                   operation.set(kLtBiasPointer, reinterpret_cast<void*>(uintptr_t(kAlignment))));
  }

  // Returns whether cuBLASLt has an algorithm.
  bool choose(const ep_product_spec& spec) {
    Preference preference;
    preference.set(kLtWorkspaceBytes, spec.most_workspace);
    for (int attribute : kLtAlignments) preference.set(attribute, kAlignment);
    // Otherwise partial sums would be rounded to the type of the result.
    if (spec.result_type == EP_PRODUCT_FLOAT16 || spec.result_type == EP_PRODUCT_BFLOAT16) {
      preference.set(kLtReductionSchemes, kLtReduceInComputeType);
    }
    int found = 0;
    int status = cublaslt.MatmulAlgoGetHeuristic(handle, operation.operation, a.layout, b.layout,
                                                 result.layout, result.layout,
                                                 preference.preference, 1, &chosen, &found);
    return status == kLtSuccess && found && chosen.status == kLtSuccess;
  }

  LtHandle handle;
  Operation operation;
  Layout a, b, result;
  Scalar alpha, beta;
  bool has_bias;
  LtHeuristic chosen{};
  std::mutex mutex;  // guards the address of the bias in the operation
};

extern "C" {

char* ep_open_cublaslt(const char* path) {
  std::string failed = open_cublaslt(path);
  return failed.empty() ? nullptr : strdup(failed.c_str());
}

char* ep_product_new(const ep_product_spec* spec, ep_product** product) {
  *product = nullptr;
  try {
    auto made = std::make_unique<ep_product>(*spec);
    if (made->choose(*spec)) *product = made.release();
    return nullptr;
  } catch (const std::exception& error) {
    return strdup(error.what());
  }
}

void ep_product_free(ep_product* product) { delete product; }

size_t ep_product_workspace_bytes(const ep_product* product) {
  return product->chosen.workspace_bytes;
}

int ep_product_launch(ep_product* product, const void* a, const void* b, const void* c,
                      const void* bias, void* result, void* workspace, void* stream) {
  std::unique_lock<std::mutex> lock(product->mutex, std::defer_lock);
  if (product->has_bias) {
    lock.lock();
    if (int status = product->operation.set(kLtBiasPointer, bias)) return status;
  }
  return cublaslt.Matmul(product->handle, product->operation.operation, &product->alpha, a,
                         product->a.layout, b, product->b.layout, &product->beta, c ? c : result,
                         product->result.layout, result, product->result.layout,
                         &product->chosen.algorithm, workspace, product->chosen.workspace_bytes,
                         stream);
}

}  // extern "C"
