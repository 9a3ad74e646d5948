#include "core/chunk_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace epprof {

void ChunkPool::set_bound(uint32_t max_chunks) {
  while (!base_ && max_chunks > 0) {
    void* space = mmap(nullptr, size_t(max_chunks) * kChunkBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space != MAP_FAILED) {
      base_ = static_cast<Chunk*>(space);
      reserved_ = max_chunks;
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

Chunk* ChunkPool::acquire() {
  if (in_use_.fetch_add(1, std::memory_order_relaxed) >= bound_) {
    in_use_.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  uint64_t head = free_.load(std::memory_order_acquire);
  while (uint32_t slot = uint32_t(head)) {
    Chunk* chunk = at(slot - 1);
    uint64_t next = ((head >> 32) + 1) << 32 | chunk->free_next;
    if (free_.compare_exchange_weak(head, next, std::memory_order_acq_rel)) {
      chunk->next.store(nullptr, std::memory_order_relaxed);
      chunk->count.store(0, std::memory_order_relaxed);
      chunk->consumed = 0;
      return chunk;
    }
  }
  uint32_t index = fresh_.fetch_add(1, std::memory_order_relaxed);
  if (index >= reserved_) {  // another thread is just releasing the free chunks
    fresh_.fetch_sub(1, std::memory_order_relaxed);
    in_use_.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  Chunk* chunk = new (at(index)) Chunk;
  chunk->next.store(nullptr, std::memory_order_relaxed);
  chunk->count.store(0, std::memory_order_relaxed);
  chunk->consumed = 0;
  chunk->index = index;
  return chunk;
}

void ChunkPool::release(Chunk* chunk) {
  uint64_t head = free_.load(std::memory_order_relaxed);
  uint64_t next;
  do {
    chunk->free_next = uint32_t(head);
    next = ((head >> 32) + 1) << 32 | (chunk->index + 1);
  } while (!free_.compare_exchange_weak(head, next, std::memory_order_release,
                                        std::memory_order_relaxed));
  in_use_.fetch_sub(1, std::memory_order_relaxed);
}

void ChunkPool::trim(uint32_t keep) {
  for (uint32_t slot = uint32_t(free_.load()); slot != 0;) {
    Chunk* chunk = at(slot - 1);
    slot = chunk->free_next;
    // Keep the page with the header.
    if (chunk->index >= keep) {
      madvise(reinterpret_cast<unsigned char*>(chunk) + 4096, kChunkBytes - 4096, MADV_DONTNEED);
    }
  }
}

void ChunkPool::forget_chunks() {
  free_ = 0;
  fresh_ = 0;
  in_use_ = 0;
}

}  // namespace epprof
