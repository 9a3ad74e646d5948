// What a build of PyTorch with CUDA has: functions of the NVTX observer that call NVTX. The first part
// compares native/torch/profiler_stubs.h with PyTorch's headers.
#include <torch/csrc/profiler/stubs/base.h>

#include <cstring>

#include <nvtx3/nvToolsExt.h>

#include "torch/profiler_stubs.h"

namespace {

namespace theirs = torch::profiler::impl;
using Theirs = theirs::ProfilerStubs;
using Ours = epprof::torch::ProfilerStubs;

// The place of a virtual function in the table of its class.
template <typename Member>
ptrdiff_t place(Member member) {
  ptrdiff_t at[2];
  static_assert(sizeof member == sizeof at);
  std::memcpy(at, &member, sizeof at);
  return at[0];
}

struct NvtxStubs final : Theirs {
  void record(c10::DeviceIndex*, theirs::ProfilerVoidEventStub*, int64_t*) const override {}
  float elapsed(const theirs::ProfilerVoidEventStub*,
                const theirs::ProfilerVoidEventStub*) const override { return 0; }
  void mark(const char* name) const override { nvtxMarkA(name); }
  void rangePush(const char* name) const override { nvtxRangePushA(name); }
  void rangePop() const override { nvtxRangePop(); }
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)>) const override {}
  void synchronize() const override {}
};

}  // namespace

extern "C" {

bool same_interface() {
  return place(&Theirs::record) == place(&Ours::record) &&
         place(&Theirs::elapsed) == place(&Ours::elapsed) &&
         place(&Theirs::mark) == place(&Ours::mark) &&
         place(&Theirs::rangePush) == place(&Ours::rangePush) &&
         place(&Theirs::rangePop) == place(&Ours::rangePop) &&
         place(&Theirs::enabled) == place(&Ours::enabled) &&
         place(&Theirs::onEachDevice) == place(&Ours::onEachDevice) &&
         place(&Theirs::synchronize) == place(&Ours::synchronize) &&
         sizeof(Theirs) == sizeof(Ours);
}

void use_nvtx() { theirs::registerCUDAMethods(new NvtxStubs); }

int push(const char* name) { return nvtxRangePushA(name); }
int pop() { return nvtxRangePop(); }

}  // extern "C"
