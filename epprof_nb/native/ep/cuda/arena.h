// The memory of a CUDA device: large regions of the driver, divided into chunks that are reused in
// the order of a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "ep/cuda/driver.h"
#include "ep/memory_log.h"

namespace epprof::ep {

struct ArenaStats {
  size_t in_use, most_in_use, reserved;  // bytes
  uint64_t allocations, regions_allocated;
  size_t largest;
  uint64_t shrinkages;
  size_t limit;  // of `reserved`; 0: none
};

// A chunk belongs to the stream that it was allocated for. The stream's work runs in order, so the
// stream can reuse the chunk as soon as it is freed. Other streams can use it only once the stream
// is idle. Releases of ONNX Runtime that do not name the stream allocate and free on the thread
// that queues the work, so `use_stream` names it. Streams of another provider (CUDA's) may end
// without notice, so they are never queried.
//
// A chunk that was allocated for a graph belongs to the graph in the same way until the graph ends,
// because each replay writes to it. While the capture of a stream begins, no stream is queried or
// waited for.
class CudaArena {
 public:
  explicit CudaArena(int device) : device_(device) {}

  // `stream`: null if unknown. Returns null if there is no memory.
  void* allocate(size_t bytes, CudaStream stream);
  void free(void* memory);  // null is allowed

  void limit(size_t bytes);           // of all regions; 0: none
  void grow_exactly(bool is_exact);   // new regions are as large as the request, not larger
  void use_stream(CudaStream stream);      // this thread queues work on it
  void leave_stream();  // a stream of another provider, used only during a run
  void add_stream(CudaStream stream);      // it lives until `forget_stream`
  void flushed_stream(CudaStream stream);  // its work has ended
  void forget_stream(CudaStream stream);   // its work has ended, and it ends
  void reclaim_all();                      // waits for the device
  void shrink();      // waits for the device, and returns regions without memory in use to it
  void synchronize();  // waits for all streams that are not being captured; throws

  // From now on, this thread allocates for the graph. Null: no longer.
  void allocate_for_graph(const void* graph);
  void end_graph(const void* graph, bool is_idle);  // no work that uses its memory is pending
  void begin_capture(CudaStream stream);  // waits for its work first; throws

  bool retain(const void* address);  // never reuses the chunk; false if it is not ours
  bool owns(const void* address);
  ArenaStats stats();

  // Of the recording that is open, in order; `*dropped`: the number that a limit cut.
  std::vector<MemoryEvent> memory_events(uint64_t* dropped);
  void end_memory_log();

 private:
  struct Chunk;
  struct BySize {
    using is_transparent = void;
    bool operator()(const Chunk*, const Chunk*) const;
    bool operator()(const Chunk*, size_t) const;
  };
  using FreeChunks = std::set<Chunk*, BySize>;

  Chunk* take(CudaStream owner, size_t bytes);
  CudaStream stream_of_thread();
  void reclaim_idle();
  void wait_and_reclaim(std::unique_lock<std::mutex>&);
  bool captures() const;
  size_t reclaimable() const;
  Chunk* grow(size_t bytes, std::unique_lock<std::mutex>&);
  Chunk* add_region(size_t bytes);
  size_t room() const;  // for new regions
  bool release_regions();
  void insert(Chunk*);
  void erase(Chunk*);
  void begin_log();
  void give(CudaStream owner, CudaStream heir);
  void forget_owner(CudaStream owner, CudaStream heir);
  Chunk* merge(Chunk*, Chunk* next);
  Chunk* chunk_at(const void* address);

  const int device_;
  std::mutex capture_mutex_, mutex_;  // in this order
  std::map<CudaStream, FreeChunks> free_;
  std::map<CudaStream, uint64_t> streams_;  // with the number of flushes
  bool others_have_streams_ = false;        // streams that are not among these
  std::set<CudaStream> graphs_;  // owners that are graphs
  std::map<uintptr_t, Chunk*> in_use_;  // by address
  ArenaStats stats_{};
  MemoryLog log_;
  size_t next_region_ = 0;
  bool is_exact_ = false;
};

CudaArena& arena_of(int device);

}  // namespace epprof::ep
