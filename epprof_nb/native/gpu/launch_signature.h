// Signatures of launches, which are equal for driver calls that do the same work.
#pragma once

#include <cstdint>

namespace epprof {

// Position of the arguments in the parameters of a launch function.
enum class LaunchParams : uint8_t { unknown, kernel, kernel_config, copy, set };

struct LaunchSignature {
  uint64_t function;  // of the driver's function, and of the kernel
  uint64_t exact;     // also of the grid and block, or the size of a copy or memset
};

// `name` is the id of the driver's function. Parameters of unknown functions are not read.
LaunchSignature launch_signature(LaunchParams kind, uint32_t name, const void* params);

inline uint64_t append_launch(uint64_t hash, uint64_t signature) {
  hash = (hash ^ signature) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

}  // namespace epprof
