// Pinned host memory for copies from and to CUDA devices.
#pragma once

#include <cstddef>

#include "ep/cuda/driver.h"

namespace epprof::ep {

struct PinnedStats {
  size_t in_use, most_in_use, reserved, largest;  // bytes
  uint64_t allocations, extensions;
};
PinnedStats pinned_stats();

void* pinned_allocate(int device, size_t bytes);  // null if there is no memory
void pinned_free(void* block);                    // null is allowed

// Notes that a copy of the stream uses the pinned block that contains `address`, if there is one.
// The block is not reused before the copy has ended. `device`: the stream's device, which must be
// current.
void pinned_in_use(const void* address, int device, CudaStream stream);

}  // namespace epprof::ep
