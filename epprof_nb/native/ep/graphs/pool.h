// The memory of the host device: blocks that are reused, because fresh pages cost more than most
// kernels.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

namespace epprof::ep {

// The memory of a graph: what its capturing thread allocates. A block that is freed stays the
// graph's, because the graph writes it at each replay. Once the graph ends, it is the pool's again.
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

// From now on, what this thread allocates is the graph's. Null: no longer.
void pool_capture(CapturePool*);

void* pool_allocate(size_t bytes);  // aligned to a cache line; null if there is no memory
void pool_free(void* block);        // null is allowed

// Keeps the block that contains `address` from being reused, because an array still refers to it.
void pool_retain(const void* address);

bool pool_owns(const void* address);  // whether it lies in a block in use

}  // namespace epprof::ep
