#include "ep/host/memory_pool.h"

#include <stdint.h>
#include <stdlib.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "core/fork.h"

namespace epprof::ep {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kMinCachedBytes = size_t(64) << 20;

// In front of each block, in its own cache line.
struct Header {
  size_t bytes;
  Header *previous, *next;  // the list of blocks in use
  bool retained;
  CapturePool* graph;  // that the block belongs to; null: none
};
static_assert(sizeof(Header) <= kAlignment, "the header fits in front of an aligned block");

ForkSafeMutex mutex;
std::unordered_map<size_t, std::vector<Header*>>& free_blocks =
    *new std::unordered_map<size_t, std::vector<Header*>>;
Header in_use{0, &in_use, &in_use, false, nullptr};
size_t cached_bytes, used_bytes, most_used_bytes, largest_bytes;
uint64_t allocations, extensions, shrinkages;
MemoryLog& log = *new MemoryLog;
thread_local CapturePool* capturing_graph = nullptr;

// Sizes are rounded up by at most an eighth, so that blocks of similar sizes are shared.
size_t rounded(size_t bytes) {
  size_t step = kAlignment;
  while (step * 8 < bytes) step *= 2;
  return std::max<size_t>((bytes + step - 1) / step * step, kAlignment);
}

Header* header_of(void* block) {
  return reinterpret_cast<Header*>(static_cast<char*>(block) - kAlignment);
}

// The block in use that contains `address`; null if there is none.
Header* block_at(const void* address) {
  auto at = reinterpret_cast<uintptr_t>(address);
  for (Header* header = in_use.next; header != &in_use; header = header->next) {
    auto begin = reinterpret_cast<uintptr_t>(header) + kAlignment;
    if (at >= begin && at < begin + header->bytes) return header;
  }
  return nullptr;
}

uint64_t address_of(const Header* header) {
  return reinterpret_cast<uintptr_t>(header) + kAlignment;
}

// Each block is a region of its own, from its allocation until the pool no longer counts it.
void log_change(MemoryAction action, const Header* header, size_t requested = 0) {
  log.add(action, address_of(header), header->bytes, requested, 0);
}

// Adds the memory that the pool holds to a log that begins.
void begin_log() {
  if (!log.begins()) return;
  for (auto& [bytes, blocks] : free_blocks) {
    for (Header* header : blocks) log.add_earlier(kRegionAdded, address_of(header), bytes, 0);
  }
  for (Header* header = in_use.next; header != &in_use; header = header->next) {
    log.add_earlier(kRegionAdded, address_of(header), header->bytes, 0);
    log.add_earlier(kAllocated, address_of(header), header->bytes, 0);
  }
}

void release(Header* header) {
  log_change(kRegionReleased, header);
  free(header);
}

void release_cached() {
  for (auto& [bytes, blocks] : free_blocks) {
    for (Header* header : blocks) release(header);
  }
  free_blocks.clear();
  cached_bytes = 0;
}

// Keeps an unused block for reuse, within a bound.
void cache(Header* header) {
  // The largest use at a time bounds the cached bytes.
  if (cached_bytes + header->bytes > std::max(kMinCachedBytes, most_used_bytes)) {
    release(header);
    return;
  }
  cached_bytes += header->bytes;
  free_blocks[header->bytes].push_back(header);
}

}  // namespace

CapturePool::~CapturePool() {
  ForkLockGuard lock(mutex);
  begin_log();
  for (auto& [bytes, blocks] : free_) {
    for (void* block : blocks) {
      log_change(kRegionAdded, static_cast<Header*>(block));
      cache(static_cast<Header*>(block));
    }
  }
  for (Header* header = in_use.next; header != &in_use; header = header->next) {
    if (header->graph == this) header->graph = nullptr;
  }
}

void pool_capture(CapturePool* graph) { capturing_graph = graph; }

void* pool_allocate(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  size_t size = rounded(bytes);
  CapturePool* graph = capturing_graph;
  ForkLockGuard lock(mutex);
  begin_log();
  Header* header = nullptr;
  auto blocks = free_blocks.find(size);
  std::vector<void*>* own = graph ? &graph->free_[size] : nullptr;
  if (own && !own->empty()) {
    header = static_cast<Header*>(own->back());
    own->pop_back();
    log_change(kRegionAdded, header);
  } else if (blocks != free_blocks.end() && !blocks->second.empty()) {
    header = blocks->second.back();
    blocks->second.pop_back();
    cached_bytes -= size;
  } else {
    void* memory = nullptr;
    if (posix_memalign(&memory, kAlignment, size + kAlignment)) {
      release_cached();
      if (posix_memalign(&memory, kAlignment, size + kAlignment)) return nullptr;
    }
    header = new (memory) Header{size, nullptr, nullptr, false, nullptr};
    extensions++;
    log_change(kRegionAdded, header);
  }
  header->graph = graph;
  header->next = in_use.next;
  header->previous = &in_use;
  in_use.next->previous = header;
  in_use.next = header;
  log_change(kAllocated, header, bytes);
  used_bytes += size;
  allocations++;
  largest_bytes = std::max(largest_bytes, size);
  most_used_bytes = std::max(most_used_bytes, used_bytes);
  return reinterpret_cast<char*>(header) + kAlignment;
}

void pool_free(void* block) {
  if (!block) return;
  ForkLockGuard lock(mutex);
  begin_log();
  Header* header = header_of(block);
  log_change(kFreed, header);
  header->previous->next = header->next;
  header->next->previous = header->previous;
  used_bytes -= header->bytes;
  if (header->retained || header->graph) log_change(kRegionReleased, header);
  if (header->retained) return;
  if (header->graph) {
    header->graph->free_[header->bytes].push_back(header);
  } else {
    cache(header);
  }
}

void pool_retain(const void* address) {
  ForkLockGuard lock(mutex);
  if (Header* header = block_at(address)) header->retained = true;
}

void pool_shrink() {
  ForkLockGuard lock(mutex);
  begin_log();
  release_cached();
  shrinkages++;
}

PoolStats pool_stats() {
  ForkLockGuard lock(mutex);
  return {used_bytes, most_used_bytes, used_bytes + cached_bytes, largest_bytes,
          allocations, extensions, shrinkages};
}

std::vector<MemoryEvent> pool_memory_events(uint64_t* dropped) {
  ForkLockGuard lock(mutex);
  begin_log();
  *dropped = log.dropped();
  return log.events();
}

void pool_end_memory_log() {
  ForkLockGuard lock(mutex);
  begin_log();
}

bool pool_owns(const void* address) {
  ForkLockGuard lock(mutex);
  return block_at(address);
}

}  // namespace epprof::ep
