#include "ep/cuda/pinned_pool.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace epprof::ep {
namespace {

constexpr size_t kSmallest = 512;

struct Block {
  uintptr_t begin;
  size_t bytes;
  CudaEvent last_copy;  // null: no copy has used the block
  int event_device;
  bool copying;  // `last_copy` has been recorded
};

std::mutex& pool_mutex = *new std::mutex;
std::map<uintptr_t, Block>& blocks = *new std::map<uintptr_t, Block>;
std::map<size_t, std::vector<Block*>>& free_blocks = *new std::map<size_t, std::vector<Block*>>;

PinnedStats now_used{};

// Powers of two. Pinning memory is slow, so blocks are kept and serve similar sizes.
size_t rounded(size_t bytes) {
  size_t size = kSmallest;
  while (size < bytes) size *= 2;
  return size;
}

bool is_idle(const Block* block) {
  return !block->copying || cuda.EventQuery(block->last_copy) == kSuccess;
}

void* taken(Block* block) {
  now_used.allocations++;
  now_used.in_use += block->bytes;
  now_used.most_in_use = std::max(now_used.most_in_use, now_used.in_use);
  now_used.largest = std::max(now_used.largest, block->bytes);
  return reinterpret_cast<void*>(block->begin);
}

}  // namespace

PinnedStats pinned_stats() {
  std::lock_guard lock(pool_mutex);
  return now_used;
}

void* pinned_allocate(int device, size_t bytes) {
  if (bytes > SIZE_MAX / 4 || is_forked()) return nullptr;
  size_t size = rounded(bytes);
  std::lock_guard lock(pool_mutex);
  CurrentDevice current(device);
  DuringCaptures relaxed;
  auto& idle = free_blocks[size];
  auto found = std::find_if(idle.begin(), idle.end(), is_idle);
  if (found != idle.end()) {
    Block* block = *found;
    idle.erase(found);
    block->copying = false;
    return taken(block);
  }
  void* memory = nullptr;
  if (cuda.MemHostAlloc(&memory, size, kPortable) != kSuccess) return nullptr;
  auto begin = reinterpret_cast<uintptr_t>(memory);
  Block& block = blocks[begin] = {begin, size, nullptr, device, false};
  now_used.reserved += size;
  now_used.extensions++;
  return taken(&block);
}

void pinned_free(void* memory) {
  if (!memory || is_forked()) return;
  std::lock_guard lock(pool_mutex);
  auto found = blocks.find(reinterpret_cast<uintptr_t>(memory));
  if (found == blocks.end()) return;
  now_used.in_use -= found->second.bytes;
  free_blocks[found->second.bytes].push_back(&found->second);
}

void pinned_in_use(const void* address, int device, CudaStream stream) {
  auto at = reinterpret_cast<uintptr_t>(address);
  std::lock_guard lock(pool_mutex);
  auto after = blocks.upper_bound(at);
  if (after == blocks.begin()) return;
  Block& block = std::prev(after)->second;
  // An event recorded in a capture would wait for a replay.
  if (at >= block.begin + block.bytes || is_capturing(stream)) return;
  if (block.last_copy && block.event_device != device) {
    check_cuda("cuEventSynchronize", cuda.EventSynchronize(block.last_copy));
    cuda.EventDestroy(block.last_copy);
    block.last_copy = nullptr;
  }
  if (!block.last_copy) {
    block.event_device = device;
    check_cuda("cuEventCreate", cuda.EventCreate(&block.last_copy, kDisableTiming));
  }
  check_cuda("cuEventRecord", cuda.EventRecord(block.last_copy, stream));
  block.copying = true;
}

}  // namespace epprof::ep
