// The memory of the host device: blocks that are reused, because fresh pages cost more than most
// kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ep/memory_log.h"

namespace epprof::ep {

// The memory of a graph, allocated by its capturing thread. A freed block still belongs to the
// graph, because each replay writes to it. Once the graph ends, the block returns to the pool.
class CapturePool {
 public:
  CapturePool() = default;
  ~CapturePool();
  CapturePool(const CapturePool&) = delete;
  CapturePool& operator=(const CapturePool&) = delete;

 private:
  friend void* pool_allocate(size_t);
  friend void pool_free(void*);
  std::unordered_map<size_t, std::vector<void*>> free_;  // blocks by size
};

// From now on, this thread allocates for the graph. Null: no longer.
void pool_capture(CapturePool*);

void* pool_allocate(size_t bytes);  // aligned to a cache line; null if there is no memory
void pool_free(void* block);        // null is allowed

// Keeps the block that contains `address` from being reused, because an array still refers to it.
void pool_retain(const void* address);

void pool_shrink();  // frees the blocks that are kept for reuse

struct PoolStats {
  size_t in_use, most_in_use, reserved, largest;  // bytes
  uint64_t allocations, extensions, shrinkages;
};
PoolStats pool_stats();

// The events of the log, and the number that its limit cut; the end of the log.
std::vector<MemoryEvent> pool_memory_events(uint64_t* dropped);
void pool_end_memory_log();

bool pool_owns(const void* address);  // whether it is in a block in use

}  // namespace epprof::ep
