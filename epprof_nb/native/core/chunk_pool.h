// A bounded, lock-free pool of equal chunks of memory. Its address space is reserved once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace epprof {

constexpr size_t kChunkBytes = 32 * 1024;

struct Chunk {
  std::atomic<Chunk*> next;     // the log's next chunk, set by its writer
  std::atomic<uint32_t> count;  // records committed by the writer
  uint32_t consumed;            // records read by the reader
  alignas(64) unsigned char data[kChunkBytes - 64];
};
static_assert(sizeof(Chunk) == kChunkBytes, "a chunk fills its slot");

class ChunkPool {
 public:
  // Bounds the number of chunks that one session acquires, including released ones. The first call
  // reserves address space for them, or for fewer if the system refuses. Pages are mapped on use.
  // Later calls change the bound, up to the first reservation.
  void set_bound(uint32_t max_chunks);
  void start_session() { acquired_ = in_use_.load(); }
  // Faults in the first `chunks`, so that the first records of a session cause no page faults.
  void prefault(uint32_t chunks);
  Chunk* acquire();  // null if the bound is reached
  void release(Chunk* chunk);
  // Returns the memory of free chunks past the first `keep` to the system.
  void trim(uint32_t keep);
  // Makes every chunk new again. Call only if no other thread exists.
  void forget_chunks();

  uint32_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  uint32_t bound() const { return bound_; }

 private:
  Chunk* at(uint32_t index) { return base_ + index; }
  uint32_t pop_free();  // index + 1; 0: none
  void push_free(uint32_t slot);

  Chunk* base_ = nullptr;
  std::atomic<uint32_t>* free_next_ = nullptr;  // per chunk: index + 1 of the next free one
  uint32_t reserved_ = 0;
  uint32_t bound_ = 0;
  std::atomic<uint32_t> in_use_{0};
  std::atomic<uint32_t> acquired_{0};  // in this session, or in use before it
  std::atomic<uint32_t> fresh_{0};  // chunks acquired for the first time so far
  std::atomic<uint64_t> free_{0};   // tag << 32 | index + 1: the tag defeats ABA
};

}  // namespace epprof
