// A lock-free log with a single producer (its thread) and a single consumer (the drain).
#pragma once

#include "core/chunk_pool.h"

namespace epprof {

template <typename Record>
class SpscLog {
 public:
  static constexpr uint32_t kPerChunk = sizeof(Chunk::data) / sizeof(Record);

  // The place of the next record. Null if the pool is exhausted; the record then counts as lost.
  Record* begin(ChunkPool& pool) {
    Chunk* chunk = tail_;
    if (!chunk || chunk->count.load(std::memory_order_relaxed) == kPerChunk) {
      Chunk* fresh = pool.acquire();
      if (!fresh) {
        lost.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
      }
      if (chunk) {
        chunk->next.store(fresh, std::memory_order_release);
      } else {
        head_.store(fresh, std::memory_order_release);
      }
      tail_ = chunk = fresh;
    }
    return reinterpret_cast<Record*>(chunk->data) + chunk->count.load(std::memory_order_relaxed);
  }

  // Publishes the record that `begin` returned. The memory of later ones is in no cache: it is
  // fetched now, since the work between two records hides that.
  void commit() {
    uint32_t count = tail_->count.load(std::memory_order_relaxed) + 1;
    tail_->count.store(count, std::memory_order_release);
    __builtin_prefetch(tail_->data + (count + 1) * sizeof(Record), 1);
  }

  // Calls `each(record)` for every record not consumed yet, and releases fully read chunks.
  template <typename Each>
  void consume(ChunkPool& pool, Each each) {
    Chunk* chunk = head_.load(std::memory_order_acquire);
    while (chunk) {
      uint32_t count = chunk->count.load(std::memory_order_acquire);
      auto* records = reinterpret_cast<const Record*>(chunk->data);
      for (uint32_t i = chunk->consumed; i < count; i++) each(records[i]);
      chunk->consumed = count;
      Chunk* next = chunk->next.load(std::memory_order_acquire);
      if (!next || count < kPerChunk) return;  // the producer may still use this chunk
      head_.store(next, std::memory_order_release);
      pool.release(chunk);
      chunk = next;
    }
  }

  size_t pending() const {
    size_t records = 0;
    for (Chunk* c = head_.load(std::memory_order_acquire); c;
         c = c->next.load(std::memory_order_acquire)) {
      records += c->count.load(std::memory_order_acquire) - c->consumed;
    }
    return records;
  }

  bool empty() const {
    Chunk* chunk = head_.load(std::memory_order_acquire);
    return !chunk || (chunk->consumed == chunk->count.load(std::memory_order_acquire) &&
                      !chunk->next.load(std::memory_order_acquire));
  }

  // Releases every chunk. Call only after the producer's thread has ended.
  void release_all(ChunkPool& pool) {
    for (Chunk* chunk = head_.load(); chunk;) {
      Chunk* next = chunk->next.load();
      pool.release(chunk);
      chunk = next;
    }
    head_.store(nullptr);
    tail_ = nullptr;
  }

  std::atomic<uint64_t> lost{0};

 private:
  std::atomic<Chunk*> head_{nullptr};
  Chunk* tail_ = nullptr;
};

}  // namespace epprof
