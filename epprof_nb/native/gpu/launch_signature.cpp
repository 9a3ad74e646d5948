#include "gpu/launch_signature.h"

#include <string.h>

namespace epprof {
namespace {

// The parameters of these functions, in the order of cuda.h. CUPTI passes a struct of them.
struct KernelParams {  // cuLaunchKernel, cuLaunchCooperativeKernel
  const void* function;
  uint32_t grid_and_block[6];
};
struct KernelConfigParams {  // cuLaunchKernelEx; CUlaunchConfig begins with grid and block
  const uint32_t* config;
  const void* function;
};
struct SizeParams {  // copies: destination, source, bytes; sets: destination, value, elements
  uint64_t destination, source_or_value, size;
};

uint64_t mix(uint64_t hash, const void* bytes, size_t words) {
  auto* at = static_cast<const unsigned char*>(bytes);
  for (size_t i = 0; i < words; i++) {
    uint32_t word;
    memcpy(&word, at + i * sizeof word, sizeof word);
    hash = append_launch(hash, word);
  }
  return hash;
}

}  // namespace

LaunchSignature launch_signature(LaunchParams kind, uint32_t name, const void* params) {
  uint64_t hash = name;
  if (!params) return {hash, hash};
  switch (kind) {
    case LaunchParams::kernel: {
      auto* p = static_cast<const KernelParams*>(params);
      hash = append_launch(hash, reinterpret_cast<uintptr_t>(p->function));
      return {hash, mix(hash, p->grid_and_block, 6)};
    }
    case LaunchParams::kernel_config: {
      auto* p = static_cast<const KernelConfigParams*>(params);
      hash = append_launch(hash, reinterpret_cast<uintptr_t>(p->function));
      return {hash, p->config ? mix(hash, p->config, 6) : hash};
    }
    case LaunchParams::copy:
    case LaunchParams::set:
      return {hash, append_launch(hash, static_cast<const SizeParams*>(params)->size)};
    case LaunchParams::unknown:
      return {hash, hash};
  }
  return {hash, hash};
}

}  // namespace epprof
