// The memory of the host device: blocks that are reused, because fresh pages cost more than most
// kernels.
#pragma once

#include <cstddef>

namespace epprof::ep {

void* pool_allocate(size_t bytes);  // aligned to a cache line; null if there is no memory
void pool_free(void* block);        // null is allowed

// Keeps the block that contains `address` from being reused, because an array still refers to it.
void pool_retain(const void* address);

bool pool_owns(const void* address);  // whether it lies in a block in use

}  // namespace epprof::ep
