#include "ep/cuda/arena.h"

#include <algorithm>
#include <vector>

namespace epprof::ep {
namespace {

constexpr size_t kArenaAlignment = 256;
constexpr size_t kFirstRegion = size_t(2) << 20, kLargestStep = size_t(256) << 20;

// The owner of chunks that some stream may still use.
const auto kUnknown = reinterpret_cast<CudaStream>(~uintptr_t(0));

// The stream on which this thread queued work last, and the number of its flushes by then.
thread_local const CudaArena* used_arena;
thread_local CudaStream used_stream;
thread_local uint64_t used_flushes;

// The graph for which this thread allocates, as an owner of chunks.
thread_local const CudaArena* graph_arena;
thread_local CudaStream graph_owner;

CudaStream as_owner(const void* graph) {
  return reinterpret_cast<CudaStream>(const_cast<void*>(graph));
}

uint64_t number_of(CudaStream stream) { return reinterpret_cast<uintptr_t>(stream); }

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

struct CudaArena::Chunk {
  uintptr_t begin;
  size_t bytes;
  Chunk *previous, *next;  // neighbours in the region
  CudaStream owner;        // null for a free chunk: no pending work; otherwise: unknown
  bool is_free, retained;
};

bool CudaArena::BySize::operator()(const Chunk* a, const Chunk* b) const {
  return a->bytes != b->bytes ? a->bytes < b->bytes : a->begin < b->begin;
}
bool CudaArena::BySize::operator()(const Chunk* chunk, size_t bytes) const {
  return chunk->bytes < bytes;
}

void CudaArena::insert(Chunk* chunk) {
  auto joins = [&](Chunk* other) {
    return other && other->is_free && other->owner == chunk->owner;
  };
  if (joins(chunk->next)) {
    erase(chunk->next);
    chunk = merge(chunk, chunk->next);
  }
  if (joins(chunk->previous)) {
    erase(chunk->previous);
    chunk = merge(chunk->previous, chunk);
  }
  chunk->is_free = true;
  free_[chunk->owner].insert(chunk);
}

void CudaArena::erase(Chunk* chunk) {
  chunk->is_free = false;
  auto found = free_.find(chunk->owner);
  found->second.erase(chunk);
  if (found->second.empty()) free_.erase(found);
}

CudaArena::Chunk* CudaArena::merge(Chunk* chunk, Chunk* next) {
  chunk->bytes += next->bytes;
  chunk->next = next->next;
  if (next->next) next->next->previous = chunk;
  delete next;
  return chunk;
}

// The smallest chunk that suffices, split off from the rest.
CudaArena::Chunk* CudaArena::take(CudaStream owner, size_t bytes) {
  auto list = free_.find(owner);
  if (list == free_.end()) return nullptr;
  auto found = list->second.lower_bound(bytes);
  if (found == list->second.end()) return nullptr;
  Chunk* chunk = *found;
  erase(chunk);
  if (size_t rest = chunk->bytes - bytes) {
    auto* left = new Chunk{chunk->begin + bytes, rest, chunk, chunk->next, owner, false, false};
    if (chunk->next) chunk->next->previous = left;
    chunk->next = left;
    chunk->bytes = bytes;
    insert(left);
  }
  return chunk;
}

void CudaArena::give(CudaStream owner, CudaStream heir) {
  auto list = free_.find(owner);
  if (list == free_.end()) return;
  std::vector<Chunk*> chunks(list->second.begin(), list->second.end());
  free_.erase(list);
  for (Chunk* chunk : chunks) {  // add all first: a merge looks for neighbours in their lists
    chunk->is_free = false;
    chunk->owner = heir;
  }
  for (Chunk* chunk : chunks) insert(chunk);
}

// Gives the chunks of idle streams to all streams, and the chunks of unknown streams if all streams
// are idle. Streams of other providers cannot be checked.
void CudaArena::reclaim_idle() {
  bool all_idle = !others_have_streams_;
  for (auto& [stream, flushes] : streams_) {
    bool has_chunks = free_.count(stream), matters = free_.count(kUnknown);
    if (!has_chunks && !matters) continue;
    bool idle = !is_capturing(stream) && cuda.StreamQuery(stream) == kSuccess;
    all_idle = all_idle && idle;
    if (idle) give(stream, nullptr);
  }
  if (all_idle) give(kUnknown, nullptr);
}

bool CudaArena::captures() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& stream) { return is_capturing(stream.first); });
}

// Bytes that are free, or will be once all work has ended, without the memory of graphs.
size_t CudaArena::reclaimable() const {
  size_t bytes = stats_.reserved - stats_.in_use;
  for (CudaStream graph : graphs_) {
    auto list = free_.find(graph);
    if (list == free_.end()) continue;
    for (const Chunk* chunk : list->second) bytes -= chunk->bytes;
  }
  return bytes;
}

// Waits without the lock, because host functions of a stream may allocate and free. Chunks freed
// meanwhile belong to later work, so only the chunks that are free now are given to all. Does not
// wait during a capture, because that would end it.
void CudaArena::wait_and_reclaim(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  std::lock_guard no_capture_begins(capture_mutex_);
  lock.lock();
  if (captures()) return reclaim_idle();
  CudaStream awaited = as_owner(&lock);
  std::vector<CudaStream> owners;
  for (auto& [owner, chunks] : free_) {
    if (owner && !graphs_.count(owner)) owners.push_back(owner);
  }
  for (CudaStream owner : owners) give(owner, awaited);
  lock.unlock();
  bool ended = cuda.CtxSynchronize() == kSuccess;
  lock.lock();
  give(awaited, ended ? nullptr : kUnknown);
}

CudaArena::Chunk* CudaArena::add_region(size_t bytes) {
  if (bytes > room()) return nullptr;
  uint64_t memory = 0;
  if (cuda.MemAlloc(&memory, bytes) != kSuccess) return nullptr;
  stats_.reserved += bytes;
  stats_.regions_allocated++;
  auto* chunk = new Chunk{uintptr_t(memory), bytes, nullptr, nullptr, nullptr, false, false};
  log_.add(kRegionAdded, memory, bytes, bytes, 0);
  insert(chunk);
  return chunk;
}

bool CudaArena::release_regions() {
  std::vector<Chunk*> whole;
  auto list = free_.find(nullptr);
  if (list == free_.end()) return false;
  for (Chunk* chunk : list->second) {
    if (!chunk->previous && !chunk->next) whole.push_back(chunk);
  }
  for (Chunk* chunk : whole) {
    erase(chunk);
    stats_.reserved -= chunk->bytes;
    log_.add(kRegionReleased, chunk->begin, chunk->bytes, chunk->bytes, 0);
    cuda.MemFree(chunk->begin);
    delete chunk;
  }
  return !whole.empty();
}

size_t CudaArena::room() const {
  if (!stats_.limit) return SIZE_MAX;
  return stats_.limit > stats_.reserved ? stats_.limit - stats_.reserved : 0;
}

void CudaArena::limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  stats_.limit = bytes;
}

void CudaArena::grow_exactly(bool is_exact) {
  std::lock_guard lock(mutex_);
  is_exact_ = is_exact;
}

// Regions double in size, because each one needs a driver call that can stall the device.
CudaArena::Chunk* CudaArena::grow(size_t bytes, std::unique_lock<std::mutex>& lock) {
  next_region_ = std::min(std::max(next_region_ * 2, kFirstRegion), kLargestStep);
  size_t exact = round_up(bytes, kFirstRegion);
  size_t most = std::min(is_exact_ ? 0 : next_region_, room() / kFirstRegion * kFirstRegion);
  if (add_region(std::max(exact, most))) return take(nullptr, bytes);
  wait_and_reclaim(lock);
  if (Chunk* chunk = take(nullptr, bytes)) return chunk;
  release_regions();
  next_region_ = 0;
  return add_region(exact) ? take(nullptr, bytes) : nullptr;
}

void* CudaArena::allocate(size_t bytes, CudaStream stream) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  if (is_forked()) CurrentDevice fails(device_);  // throws
  size_t size = std::max(round_up(bytes, kArenaAlignment), kArenaAlignment);
  std::unique_lock lock(mutex_);
  begin_log();
  if (graph_owner && graph_arena == this) {
    stream = graph_owner;
  } else if (!stream) {
    stream = stream_of_thread();
  } else {
    others_have_streams_ |= !streams_.count(stream);
  }
  Chunk* chunk = stream ? take(stream, size) : nullptr;
  if (!chunk) chunk = take(nullptr, size);
  if (!chunk) {
    CurrentDevice current(device_);
    DuringCaptures relaxed;
    reclaim_idle();
    chunk = take(nullptr, size);
    // More memory is free than was ever in use at a time, but it belongs to busy streams. Waiting
    // bounds the reserved memory.
    if (!chunk && reclaimable() >= stats_.most_in_use + size) {
      wait_and_reclaim(lock);
      chunk = take(nullptr, size);
    }
    if (!chunk) chunk = grow(size, lock);
  }
  if (!chunk) return nullptr;
  chunk->owner = stream;
  in_use_.emplace(chunk->begin, chunk);
  stats_.allocations++;
  stats_.largest = std::max(stats_.largest, chunk->bytes);
  stats_.in_use += chunk->bytes;
  stats_.most_in_use = std::max(stats_.most_in_use, stats_.in_use);
  log_.add(kAllocated, chunk->begin, chunk->bytes, bytes, number_of(stream));
  return reinterpret_cast<void*>(chunk->begin);
}

void CudaArena::free(void* memory) {
  if (!memory || is_forked()) return;
  std::lock_guard lock(mutex_);
  auto found = in_use_.find(reinterpret_cast<uintptr_t>(memory));
  if (found == in_use_.end()) return;
  Chunk* chunk = found->second;
  if (chunk->retained) return;
  begin_log();
  log_.add(kFreed, chunk->begin, chunk->bytes, chunk->bytes, number_of(chunk->owner));
  in_use_.erase(found);
  stats_.in_use -= chunk->bytes;
  if (!chunk->owner) chunk->owner = stream_of_thread();
  if (!chunk->owner) chunk->owner = kUnknown;
  insert(chunk);
}

// The stream that this thread uses; null if it was flushed since its last use.
CudaStream CudaArena::stream_of_thread() {
  if (used_arena != this || !used_stream) return nullptr;
  auto found = streams_.find(used_stream);
  if (found != streams_.end() && found->second != used_flushes) return nullptr;
  return used_stream;
}

void CudaArena::use_stream(CudaStream stream) {
  std::lock_guard lock(mutex_);
  auto found = streams_.find(stream);
  used_arena = this;
  used_stream = stream;
  used_flushes = found == streams_.end() ? 0 : found->second;
  others_have_streams_ |= found == streams_.end();
}

void CudaArena::leave_stream() {
  std::lock_guard lock(mutex_);
  if (used_arena == this && !streams_.count(used_stream)) used_stream = nullptr;
}

void CudaArena::add_stream(CudaStream stream) {
  std::lock_guard lock(mutex_);
  streams_.emplace(stream, 0);
}

void CudaArena::flushed_stream(CudaStream stream) {
  std::lock_guard lock(mutex_);
  auto found = streams_.find(stream);
  if (found != streams_.end()) found->second++;
}

void CudaArena::reclaim_all() {
  if (is_forked()) return;
  CurrentDevice current(device_);
  std::unique_lock lock(mutex_);
  wait_and_reclaim(lock);
}

void CudaArena::shrink() {
  if (is_forked()) return;
  CurrentDevice current(device_);
  DuringCaptures relaxed;
  std::unique_lock lock(mutex_);
  begin_log();
  wait_and_reclaim(lock);
  release_regions();
  next_region_ = 0;
  stats_.shrinkages++;
}

// Does not hold the lock of the chunks, because host functions of a stream may allocate.
void CudaArena::synchronize() {
  CurrentDevice current(device_);
  std::lock_guard no_capture_begins(capture_mutex_);
  std::vector<CudaStream> streams;
  bool whole = false;
  {
    std::lock_guard lock(mutex_);
    whole = !captures();
    if (!whole) {
      for (auto& [stream, flushes] : streams_) {
        if (!is_capturing(stream)) streams.push_back(stream);
      }
    }
  }
  if (whole) check_cuda("cuCtxSynchronize", cuda.CtxSynchronize());
  for (CudaStream stream : streams) {
    check_cuda("cuStreamSynchronize", cuda.StreamSynchronize(stream));
  }
}

void CudaArena::forget_stream(CudaStream stream) {
  if (is_forked()) return;
  std::lock_guard lock(mutex_);
  streams_.erase(stream);
  if (used_stream == stream) used_stream = nullptr;
  forget_owner(stream, nullptr);
}

// Gives the free chunks of an ending owner to another owner.
void CudaArena::forget_owner(CudaStream owner, CudaStream heir) {
  give(owner, heir);
  for (auto& [begin, chunk] : in_use_) {
    if (chunk->owner == owner) chunk->owner = nullptr;
  }
}

void CudaArena::allocate_for_graph(const void* graph) {
  std::lock_guard lock(mutex_);
  graph_arena = this;
  graph_owner = as_owner(graph);
  if (graph) graphs_.insert(graph_owner);
}

void CudaArena::end_graph(const void* graph, bool is_idle) {
  if (is_forked()) return;
  std::lock_guard lock(mutex_);
  graphs_.erase(as_owner(graph));
  forget_owner(as_owner(graph), is_idle ? nullptr : kUnknown);
}

// Holds the locks under which other threads query and wait for streams, which would end the
// capture.
void CudaArena::begin_capture(CudaStream stream) {
  check_cuda("cuStreamSynchronize", cuda.StreamSynchronize(stream));
  std::scoped_lock lock(capture_mutex_, mutex_);
  give(stream, nullptr);  // the chunks of runs before the capture
  check_cuda("cuStreamBeginCapture", cuda.StreamBeginCapture(stream, kThreadLocal));
}

CudaArena::Chunk* CudaArena::chunk_at(const void* address) {
  auto at = reinterpret_cast<uintptr_t>(address);
  auto after = in_use_.upper_bound(at);
  if (after == in_use_.begin()) return nullptr;
  Chunk* chunk = std::prev(after)->second;
  return at < chunk->begin + chunk->bytes ? chunk : nullptr;
}

bool CudaArena::retain(const void* address) {
  if (is_forked()) return false;
  std::lock_guard lock(mutex_);
  Chunk* chunk = chunk_at(address);
  if (chunk) chunk->retained = true;
  return chunk;
}

bool CudaArena::owns(const void* address) {
  if (is_forked()) return false;
  std::lock_guard lock(mutex_);
  return chunk_at(address);
}

ArenaStats CudaArena::stats() {
  std::lock_guard lock(mutex_);
  return stats_;
}

// Adds the memory that the arena holds to a log that begins.
void CudaArena::begin_log() {
  if (!log_.begins()) return;
  auto add_region = [&](Chunk* first) {
    uint64_t bytes = 0;
    for (Chunk* chunk = first; chunk; chunk = chunk->next) bytes += chunk->bytes;
    log_.add_earlier(kRegionAdded, first->begin, bytes, 0);
  };
  for (auto& [owner, chunks] : free_) {
    for (Chunk* chunk : chunks) {
      if (!chunk->previous) add_region(chunk);
    }
  }
  for (auto& [begin, chunk] : in_use_) {
    if (!chunk->previous) add_region(chunk);
    log_.add_earlier(kAllocated, begin, chunk->bytes, number_of(chunk->owner));
  }
}

std::vector<MemoryEvent> CudaArena::memory_events(uint64_t* dropped) {
  *dropped = 0;
  if (is_forked()) return {};
  std::lock_guard lock(mutex_);
  begin_log();
  *dropped = log_.dropped();
  return log_.events();
}

void CudaArena::end_memory_log() {
  if (is_forked()) return;
  std::lock_guard lock(mutex_);
  begin_log();
}

CudaArena& arena_of(int device) {
  // Never destroyed, because ONNX Runtime frees tensors until the process ends.
  static const auto& arenas = *new std::vector<std::unique_ptr<CudaArena>>([] {
    std::vector<std::unique_ptr<CudaArena>> made;
    for (int i = 0; i < device_count(); i++) made.push_back(std::make_unique<CudaArena>(i));
    return made;
  }());
  return *arenas.at(size_t(device));
}

}  // namespace epprof::ep
