// The memory of a CUDA device: large regions of the driver, divided into chunks that are reused in
// the order of a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "ep/cuda_driver.h"

namespace epprof::ep {

struct ArenaStats {
  size_t in_use, most_in_use, reserved;  // bytes
  uint64_t allocations, regions_allocated;
};

// A chunk belongs to the stream that it was allocated for. The stream's work runs in order, so the
// stream can have the chunk again as soon as it is freed; anybody else only once the stream is idle.
class CudaArena {
 public:
  explicit CudaArena(int device) : device_(device) {}

  // `stream`: null for memory that the caller uses after it has synchronized. Null if there is none.
  void* allocate(size_t bytes, CudaStream stream);
  void free(void* memory);  // null is allowed
  // Ends the stream, which is idle, as an owner of chunks.
  void forget_stream(CudaStream stream);
  bool retain(const void* address);  // never reuses the chunk; false if it is not ours
  bool owns(const void* address);
  ArenaStats stats();

 private:
  struct Chunk;
  struct BySize {
    using is_transparent = void;
    bool operator()(const Chunk*, const Chunk*) const;
    bool operator()(const Chunk*, size_t) const;
  };
  using FreeChunks = std::set<Chunk*, BySize>;

  Chunk* take(CudaStream owner, size_t bytes);
  bool reclaim_idle(bool wait);
  Chunk* grow(size_t bytes);
  Chunk* add_region(size_t bytes);
  bool release_regions();
  void insert(Chunk*);
  void erase(Chunk*);
  void give_to_all(CudaStream owner);
  Chunk* merge(Chunk*, Chunk* next);
  Chunk* chunk_at(const void* address);

  const int device_;
  std::mutex mutex_;
  std::map<CudaStream, FreeChunks> free_;
  std::map<uintptr_t, Chunk*> in_use_;  // by address
  ArenaStats stats_{};
  size_t next_region_ = 0;
};

CudaArena& arena_of(int device);

}  // namespace epprof::ep
