// Decoded activities: columns in blocks, so that growing never moves what is there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/columns.h"

namespace epprof {

enum ActivityKind : uint8_t { kKernel, kMemcpy, kMemset, kSynchronization };

// Columns of activities, side by side in one block of memory. Fields that a kind does not have
// keep what `clear` puts there: 0, and -1 for numbers that may be missing.
struct Block {
  // No multiple of a page: else every column's next row falls into the same set of the cache.
  static constexpr size_t kRows = 8192 + 40;

  int64_t start[kRows], end[kRows], bytes[kRows], graph_node[kRows];
  uint32_t correlation[kRows], name[kRows];
  int32_t device[kRows], context[kRows], stream[kRows];
  int32_t grid_x[kRows], grid_y[kRows], grid_z[kRows];
  int32_t block_x[kRows], block_y[kRows], block_z[kRows];
  int32_t registers[kRows], static_shared[kRows], dynamic_shared[kRows];
  int32_t src_device[kRows], dst_device[kRows], graph[kRows];
  uint8_t kind[kRows], type[kRows], src_kind[kRows], dst_kind[kRows];  // type: of copy or wait

  void clear();
};

// Blocks given back are used again: a later session does not pay for fresh pages. Locked, because
// columns are freed on another thread than the one that decodes.
class BlockPool {
 public:
  std::unique_ptr<Block> get();
  void put(std::unique_ptr<Block> block);

 private:
  static constexpr size_t kKept = 32;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

BlockPool& block_pool();  // the process's

struct ExternalId {
  uint32_t correlation;
  uint64_t id;
};

struct ApiCall {
  int64_t start, end;
  uint32_t correlation, cbid, thread;
  int32_t result;
  uint8_t runtime;
};

struct Overhead {
  int64_t start, end;
  uint32_t kind, thread;
};

struct MemoryEvent {
  int64_t time;
  uint64_t address, bytes;
  uint32_t correlation, operation, memory_kind;
  int32_t device, context, stream;
};

class Store {
 public:
  void set_bound(uint64_t max_records) { bound_ = max_records; }

  // The block and row for one more activity; null (and one more lost) beyond the bound.
  Block* begin(size_t* row) {
    if (held_ >= bound_) {
      lost_++;
      own_launch_count_++;
      return nullptr;
    }
    if (row_ == Block::kRows) {
      blocks_.push_back(block_pool().get());
      row_ = 0;
    }
    *row = row_;
    return blocks_.back().get();
  }
  // Keeps the row that `begin` gave, or not.
  void commit(bool own_launch_count) {
    own_launch_count_ += own_launch_count;
    row_++;
    held_++;
  }

  void add(const ExternalId& e) { if (room()) external_.push_back(e); }
  void add(const ApiCall& e) { if (room()) api_.push_back(e); }
  void add(const Overhead& e) { if (room()) overhead_.push_back(e); }
  void add(const MemoryEvent& e) { if (room()) memory_.push_back(e); }
  void add_unfinished() { unfinished_++; }
  // Activities seen that a call of their own launched (not a graph's), those lost included.
  int64_t own_launch_count() const { return own_launch_count_; }
  void reset_own_launch_count() { own_launch_count_ = 0; }
  // The API call recorded last, taken out again; false where there is none.
  bool take_last_api(ApiCall* call);
  // Everything since the last call; bounds start anew.
  void take(Columns* columns, uint64_t counts[3]);  // lost, unfinished, decoded

 private:
  using Blocks = std::vector<std::unique_ptr<Block>>;

  int64_t own_launch_count_ = 0;
  bool room();
  template <typename T>
  void column(Columns* columns, const char* name, std::shared_ptr<Blocks> blocks, size_t rows,
              T (Block::*member)[Block::kRows]);

  uint64_t bound_ = UINT64_MAX;
  uint64_t held_ = 0;  // records of all tables
  size_t row_ = Block::kRows;  // the next row of the last block
  uint64_t lost_ = 0, unfinished_ = 0;
  Blocks blocks_;
  std::vector<ExternalId> external_;
  std::vector<ApiCall> api_;
  std::vector<Overhead> overhead_;
  std::vector<MemoryEvent> memory_;
};

}  // namespace epprof
