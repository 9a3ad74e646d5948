// Signatures of launches: equal for calls of the driver that do the same work.
#pragma once

#include <cstdint>

namespace epprof {

// Position of the arguments in the parameters of a driver function.
enum class LaunchParams : uint8_t { unknown, kernel, kernel_config, copy, set };

LaunchParams launch_params(const char* function);

// A hash of the kernel, grid and block of a launch, or of the size of a copy or memset. `name` is the
// function's id. Parameters of unknown functions are not read.
uint64_t launch_signature(LaunchParams kind, uint32_t name, const void* params);

inline uint64_t append_launch(uint64_t hash, uint64_t signature) {
  hash = (hash ^ signature) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

}  // namespace epprof
