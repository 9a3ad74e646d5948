#include "core/chunk_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <vector>

namespace epprof {

void ChunkPool::set_bound(uint32_t max_chunks) {
  while (!base_ && max_chunks > 0) {
    void* space = mmap(nullptr, size_t(max_chunks) * kChunkBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space != MAP_FAILED) {
      base_ = static_cast<Chunk*>(space);
      reserved_ = max_chunks;
      free_next_ = new std::atomic<uint32_t>[max_chunks];
    } else {
      max_chunks /= 2;  // the address space is limited (ulimit -v)
    }
  }
  bound_ = std::min(max_chunks, reserved_);
}

void ChunkPool::prefault(uint32_t chunks) {
  chunks = std::min(chunks, bound_);
  for (uint32_t i = fresh_.load(); i < chunks; i++) {
    auto* bytes = reinterpret_cast<volatile unsigned char*>(at(i));
    for (size_t offset = 0; offset < kChunkBytes; offset += 4096) bytes[offset] = 0;
  }
}

uint32_t ChunkPool::pop_free() {
  uint64_t head = free_.load(std::memory_order_acquire);
  while (uint32_t slot = uint32_t(head)) {
    uint32_t after = free_next_[slot - 1].load(std::memory_order_relaxed);
    uint64_t next = ((head >> 32) + 1) << 32 | after;
    if (free_.compare_exchange_weak(head, next, std::memory_order_acq_rel)) return slot;
  }
  return 0;
}

void ChunkPool::push_free(uint32_t slot) {
  uint64_t head = free_.load(std::memory_order_relaxed);
  uint64_t next;
  do {
    free_next_[slot - 1].store(uint32_t(head), std::memory_order_relaxed);
    next = ((head >> 32) + 1) << 32 | slot;
  } while (!free_.compare_exchange_weak(head, next, std::memory_order_release,
                                        std::memory_order_relaxed));
}

Chunk* ChunkPool::acquire() {
  if (acquired_.fetch_add(1, std::memory_order_relaxed) >= bound_) {
    acquired_.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  uint32_t slot = pop_free();
  if (!slot) {
    uint32_t index = fresh_.fetch_add(1, std::memory_order_relaxed);
    if (index >= reserved_) {  // another thread is releasing or trimming the free chunks
      fresh_.fetch_sub(1, std::memory_order_relaxed);
      acquired_.fetch_sub(1, std::memory_order_relaxed);
      return nullptr;
    }
    slot = index + 1;
  }
  in_use_.fetch_add(1, std::memory_order_relaxed);
  Chunk* chunk = new (at(slot - 1)) Chunk;
  chunk->next.store(nullptr, std::memory_order_relaxed);
  chunk->count.store(0, std::memory_order_relaxed);
  chunk->consumed = 0;
  return chunk;
}

void ChunkPool::release(Chunk* chunk) {
  push_free(uint32_t(chunk - base_) + 1);
  in_use_.fetch_sub(1, std::memory_order_relaxed);
}

void ChunkPool::trim(uint32_t keep) {
  std::vector<uint32_t> free_slots;  // removed, so that no thread acquires one meanwhile
  while (uint32_t slot = pop_free()) free_slots.push_back(slot);
  for (uint32_t slot : free_slots) {
    if (slot > keep) madvise(at(slot - 1), kChunkBytes, MADV_DONTNEED);
    push_free(slot);
  }
}

void ChunkPool::forget_chunks() {
  free_ = 0;
  fresh_ = 0;
  in_use_ = 0;
  acquired_ = 0;
}

}  // namespace epprof
