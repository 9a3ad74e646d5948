// Kernels that ONNX Runtime requires on CUDA devices: copies, and the device memory work of If,
// Loop and Scan.
#include <algorithm>

#include "ep/cuda/arena.h"
#include "ep/cuda/memory.h"
#include "ep/declaration.h"
#include "ep/native_kernels.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

// Recorded by CUPTI, unlike the copies of the host device.
struct CopyKernel : KernelImpl {
  int device;
};

Status* copy(KernelImpl* self, KernelContext* context) {
  return as_status([&] {
    void* stream = nullptr;
    check(rt.compute_stream(context, &stream));
    int device = static_cast<CopyKernel*>(self)->device;
    CurrentDevice current(device);
    arena_of(device).use_stream(static_cast<CudaStream>(stream));
    auto [source, target] = tensors_of_copy(context);
    if (!target) return;
    copy_tensor_on(device, static_cast<CudaStream>(stream), source, target);
  });
}

void release(KernelImpl* self) { delete static_cast<CopyKernel*>(self); }

// `device`: a number as a pointer.
Status* create_copy(void* device, const KernelInfo*, KernelImpl** made) {
  auto* kernel = new CopyKernel;
  static_cast<KernelImpl&>(*kernel) = {kApiVersion, 0, copy, release, nullptr, nullptr};
  kernel->device = int(reinterpret_cast<intptr_t>(device));
  *made = kernel;
  return nullptr;
}

void release_loop_helper(LoopKernelHelper*) {}
void release_scan_helper(ScanKernelHelper*) {}

Status* concat_output(LoopKernelHelper*, void* stream, const Value* const* values, size_t count,
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
      CurrentDevice current(cuda_device_of(values[i]));
      copy_on(static_cast<CudaStream>(stream), to, from, size);
      to += size;
      bytes -= size;
    }
  });
}

// Scan moves one axis to the front, or the first axis back. Returns that axis, or -1.
int moved_axis(const size_t* permutation, size_t rank, bool to_front) {
  size_t axis = 0;
  if (to_front) {
    axis = permutation[0];
  } else {
    while (axis < rank && permutation[axis] != 0) axis++;
  }
  for (size_t i = 0; i < rank; i++) {
    size_t expected = to_front ? (i == 0 ? axis : i <= axis ? i - 1 : i)
                               : (i < axis ? i + 1 : i == axis ? 0 : i);
    if (permutation[i] != expected) return -1;
  }
  return int(axis);
}

// Copies the slices of the axis one by one, each as a matrix of its outer and inner dimensions.
Status* transpose(ScanKernelHelper*, const size_t* permutation, size_t rank, const Value* input,
                  SyncStream* stream, Value* output) {
  return as_status([&] {
    const int64_t* dims = nullptr;
    size_t dim_count = 0, bytes = 0, outer = 1, inner = 1, elements = 1;
    int32_t type = 0;
    const void* from = nullptr;
    void* to = nullptr;
    check(rt.tensor_bytes(input, &bytes));
    if (!bytes) return;
    check(rt.tensor_data(input, &from));
    check(rt.tensor_mutable_data(output, &to));
    int front = moved_axis(permutation, rank, true), back = moved_axis(permutation, rank, false);
    if (front < 0 && back < 0) throw std::runtime_error("Scan: a transposition of several axes");
    bool to_front = front >= 0;
    size_t axis = size_t(to_front ? front : back);
    check(rt.tensor_shape(to_front ? input : output, &type, &dims, &dim_count));
    for (size_t i = 0; i < rank; i++) {
      (i < axis ? outer : i > axis ? inner : elements) *= size_t(dims[i]);
    }
    size_t row = bytes / (outer * elements), slice = row * outer;
    CurrentDevice current(cuda_device_of(output));
    auto handle = static_cast<CudaStream>(stream ? rt.stream_handle(stream) : nullptr);
    for (size_t i = 0; i < elements; i++) {
      Copy2D copy{};
      auto strided = uint64_t(i * row), packed = uint64_t(i * slice);
      copy.source_type = copy.target_type = kDeviceMemory;
      copy.source_device = reinterpret_cast<uint64_t>(from) + (to_front ? strided : packed);
      copy.source_pitch = to_front ? row * elements : row;
      copy.target_device = reinterpret_cast<uint64_t>(to) + (to_front ? packed : strided);
      copy.target_pitch = to_front ? row : row * elements;
      copy.width = row;
      copy.height = outer;
      check_cuda("cuMemcpy2DAsync", cuda.Memcpy2DAsync(&copy, handle));
    }
    if (!handle) check_cuda("cuStreamSynchronize", cuda.StreamSynchronize(handle));
  });
}

LoopKernelHelper loop_helper = {kApiVersion, release_loop_helper, concat_output};
ScanKernelHelper scan_helper = {kApiVersion, release_scan_helper, transpose};

}  // namespace

void add_cuda_copy_kernels(KernelRegistry* registry, int device) {
  auto* state = reinterpret_cast<void*>(intptr_t(device));
  add_kernel(registry, copy_from_host(), create_copy, state);
  add_kernel(registry, copy_to_host(), create_copy, state);
}

LoopKernelHelper* cuda_loop_helper() { return &loop_helper; }
ScanKernelHelper* cuda_scan_helper() { return &scan_helper; }

}  // namespace epprof::ep
