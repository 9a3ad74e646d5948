#include "core/clock.h"
#include "core/stack_entries.h"
#include "ep/declaration.h"
#include "ep/host/memory.h"
#include "ep/interpreter.h"
#include "ep/native_kernels.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

struct CopyKernel : KernelImpl {
  bool to_device;
};

Status* copy(KernelImpl* self, KernelContext* context) {
  return as_status([&] {
    auto [source, target] = tensors_of_copy(context);
    if (!target) return;
    bool recorded = recording_ops.load(std::memory_order_relaxed);
    int64_t start = recorded ? epprof_now_ns() : 0;
    size_t bytes = copy_tensor(source, target);
    if (recorded) {
      bool to_device = static_cast<CopyKernel*>(self)->to_device;
      interpreter.record_copy(start, epprof_now_ns(), bytes, to_device);
    }
  });
}

void release(KernelImpl*) {}

CopyKernel from_host_kernel = {{kApiVersion, 0, copy, release, nullptr, nullptr}, true};
CopyKernel to_host_kernel = {{kApiVersion, 0, copy, release, nullptr, nullptr}, false};

Status* create(void* kernel, const KernelInfo*, KernelImpl** made) {
  *made = static_cast<CopyKernel*>(kernel);
  return nullptr;
}

}  // namespace

CopiedTensors tensors_of_copy(KernelContext* context) {
  CopiedTensors tensors{};
  const int64_t* dims = nullptr;
  size_t rank = 0;
  int32_t type = 0;
  check(rt.context_input(context, 0, &tensors.source));
  if (!tensors.source) return tensors;
  check(rt.tensor_shape(tensors.source, &type, &dims, &rank));
  check(rt.context_output(context, 0, dims, rank, &tensors.target));
  return tensors;
}

Declaration copy_from_host() {
  return {"MemcpyFromHost", "", 1, 1, {{"T", kNumericTypes}}, {0}, {}};
}
Declaration copy_to_host() { return {"MemcpyToHost", "", 1, 1, {{"T", kNumericTypes}}, {}, {0}}; }

void add_copy_kernels(KernelRegistry* registry) {
  add_kernel(registry, copy_from_host(), create, &from_host_kernel);
  add_kernel(registry, copy_to_host(), create, &to_host_kernel);
}

}  // namespace epprof::ep
