// The part of PyTorch's C++ interface with which its NVTX observer calls a tool. A test compares it
// with PyTorch's headers, which are the same from 2.0 to 2.13.
#pragma once

#include <cstdint>

namespace epprof::torch {

// torch::profiler::impl::ProfilerStubs. Non-trivial arguments that are passed by value there are
// passed by address here, as the C++ ABI does.
struct ProfilerStubs {
  virtual void record(void* device, void* event, int64_t* cpu_ns) const = 0;
  virtual float elapsed(const void* event, const void* event2) const = 0;
  virtual void mark(const char* name) const = 0;
  virtual void rangePush(const char* name) const = 0;
  virtual void rangePop() const = 0;
  virtual bool enabled() const = 0;
  virtual void onEachDevice(void* op) const = 0;
  virtual void synchronize() const = 0;
  virtual ~ProfilerStubs() = default;
};

constexpr const char* kRegister =
    "_ZN5torch8profiler4impl19registerCUDAMethodsEPNS1_13ProfilerStubsE";
constexpr const char* kRegistered = "_ZN5torch8profiler4impl9cudaStubsEv";

using Register = void (*)(ProfilerStubs*);
using Registered = const ProfilerStubs* (*)();

}  // namespace epprof::torch
