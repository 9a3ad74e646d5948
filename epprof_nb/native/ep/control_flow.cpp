// If, Loop and Scan. ONNX Runtime runs the subgraphs; the provider does the work in device memory.
#include <string.h>

#include <vector>

#include "ep/declaration.h"
#include "ep/native_kernels.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

void release_loop_helper(LoopKernelHelper*) {}
void release_scan_helper(ScanKernelHelper*) {}

Status* concat_output(LoopKernelHelper*, void*, const Value* const* values, size_t count,
                      void* output, size_t bytes) {
  return as_status([&] {
    char* to = static_cast<char*>(output);
    for (size_t i = 0; i < count; i++) {
      size_t size = 0;
      const void* from = nullptr;
      check(rt.tensor_bytes(values[i], &size));
      if (!size) continue;
      if (size > bytes) throw std::runtime_error("Loop: the outputs of the iterations differ");
      check(rt.tensor_data(values[i], &from));
      memcpy(to, from, size);
      to += size;
      bytes -= size;
    }
  });
}

Status* transpose(ScanKernelHelper*, const size_t* permutation, size_t rank, const Value* input,
                  SyncStream*, Value* output) {
  return as_status([&] {
    const int64_t* dims = nullptr;
    size_t input_rank = 0, bytes = 0, elements = 1;
    int32_t type = 0;
    const void* from = nullptr;
    void* to = nullptr;
    check(rt.tensor_shape(input, &type, &dims, &input_rank));
    check(rt.tensor_bytes(input, &bytes));
    if (!bytes) return;
    check(rt.tensor_data(input, &from));
    check(rt.tensor_mutable_data(output, &to));
    std::vector<size_t> stride(rank, 1), at(rank, 0);
    for (size_t i = 0; i < rank; i++) elements *= size_t(dims[i]);
    for (size_t i = rank - 1; i > 0; i--) stride[i - 1] = stride[i] * size_t(dims[i]);
    size_t size = bytes / elements;
    for (size_t element = 0; element < elements; element++) {
      size_t offset = 0;
      for (size_t i = 0; i < rank; i++) offset += at[i] * stride[permutation[i]];
      memcpy(static_cast<char*>(to) + element * size,
             static_cast<const char*>(from) + offset * size, size);
      for (size_t i = rank; i-- > 0;) {
        if (++at[i] < size_t(dims[permutation[i]])) break;
        at[i] = 0;
      }
    }
  });
}

LoopKernelHelper loop_helper = {kApiVersion, release_loop_helper, concat_output};
ScanKernelHelper scan_helper = {kApiVersion, release_scan_helper, transpose};

Status* create_if(void*, const KernelInfo* info, KernelImpl** kernel) {
  return rt.create_if(info, kernel);
}
Status* create_loop(void* helper, const KernelInfo* info, KernelImpl** kernel) {
  return rt.create_loop(info, static_cast<LoopKernelHelper*>(helper), kernel);
}
Status* create_scan(void* helper, const KernelInfo* info, KernelImpl** kernel) {
  return rt.create_scan(info, static_cast<ScanKernelHelper*>(helper), kernel);
}

}  // namespace

void add_control_flow_kernels(KernelRegistry* registry, int device) {
  Declaration if_{"If", "", 1, kLastVersion, {{"V", kNumericTypes}}, {0}, {}};
  Declaration loop{"Loop", "", 1, kLastVersion, {{"V", kNumericTypes}}, {0, 1}, {}};
  // Before version 9, Scan has batches.
  Declaration scan{"Scan", "", 9, kLastVersion, {{"V", kNumericTypes}}, {}, {}};
  add_kernel(registry, if_, create_if, nullptr);
  add_kernel(registry, loop, create_loop, device < 0 ? &loop_helper : cuda_loop_helper());
  add_kernel(registry, scan, create_scan, device < 0 ? &scan_helper : cuda_scan_helper());
}

}  // namespace epprof::ep
