// Receives the messages of PyTorch's NVTX observer in builds without CUDA, which have no NVTX.
#include "torch/profiler_stubs.h"

#include <dlfcn.h>

#include <atomic>

#include "nvtx/ranges.h"
#include "torch/api.h"

namespace epprof::torch {
namespace {

// Whether the observer may be enabled. It is unavailable to other code, which would need CUDA.
std::atomic<bool> is_enabled{false};

struct Observed final : ProfilerStubs {
  void record(void*, void*, int64_t*) const override {}
  float elapsed(const void*, const void*) const override { return 0; }
  void mark(const char*) const override {}
  void rangePush(const char* name) const override { nvtx::push_operator_message(name); }
  void rangePop() const override { nvtx::pop_range(nvtx::domain_of(nullptr)); }
  bool enabled() const override { return is_enabled.load(); }
  void onEachDevice(void*) const override {}
  void synchronize() const override {}
};

// Stays registered, because a range may end on another thread after the recording.
Observed& observed = *new Observed;

}  // namespace
}  // namespace epprof::torch

using namespace epprof::torch;

extern "C" {

int epprof_torch_observe(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (!handle) return 0;
  auto add = reinterpret_cast<Register>(dlsym(handle, kRegister));
  auto current = reinterpret_cast<Registered>(dlsym(handle, kRegistered));
  dlclose(handle);
  if (!add || !current) return 0;
  if (current() == &observed) return 1;
  add(&observed);
  return current() == &observed;
}

void epprof_torch_enable(int on) { is_enabled = on != 0; }

}  // extern "C"
