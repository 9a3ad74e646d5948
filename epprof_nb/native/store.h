// Decoded activities: columns in blocks, so that growing never moves what is there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "columns.h"

namespace epprof {

enum ActivityKind : uint8_t { kKernel, kMemcpy, kMemset, kSynchronization, kGraphLaunch, kKindCount };

// One column: equal blocks, the last one partly filled.
template <typename T>
class BlockColumn {
 public:
  static constexpr size_t kBlock = 16384;

  void put(size_t row, T value) {
    if (row == blocks_.size() * kBlock) blocks_.emplace_back(new T[kBlock]);
    blocks_[row / kBlock][row % kBlock] = value;
  }
  std::vector<T> take(size_t rows) {
    std::vector<T> all;
    all.reserve(rows);
    for (size_t b = 0; b * kBlock < rows; b++) {
      const T* first = blocks_[b].get();
      all.insert(all.end(), first, first + std::min(kBlock, rows - b * kBlock));
    }
    blocks_.clear();
    return all;
  }

 private:
  std::vector<std::unique_ptr<T[]>> blocks_;
};

// One activity, as decoded; fields that its kind does not have are 0, ids -1.
struct Activity {
  int64_t start, end, bytes = 0, graph_node = 0;
  uint32_t correlation, name = 0;
  int32_t device = -1, context = -1, stream = -1;
  int32_t grid[3] = {-1, -1, -1}, block[3] = {-1, -1, -1};
  int32_t registers = -1, static_shared = -1, dynamic_shared = -1;
  int32_t src_device = -1, dst_device = -1, graph = 0;
  uint8_t kind, type = 0, src_kind = 0, dst_kind = 0;  // type: of copy or synchronization
};

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
  void add(const Activity& activity);
  void add(const ExternalId& e) { if (room()) external_.push_back(e); }
  void add(const ApiCall& e) { if (room()) api_.push_back(e); }
  void add(const Overhead& e) { if (room()) overhead_.push_back(e); }
  void add(const MemoryEvent& e) { if (room()) memory_.push_back(e); }
  void add_unfinished() { unfinished_++; }
  void add_lost(uint64_t records) { lost_ += records; }
  // The API call recorded last, taken out again; false where there is none.
  bool take_last_api(ApiCall* call);
  // Everything since the last call; bounds start anew.
  void take(Columns* columns, uint64_t counts[3]);  // lost, unfinished, decoded

 private:
  bool room();

  uint64_t bound_ = UINT64_MAX;
  uint64_t held_ = 0;     // records of all tables
  size_t activities_ = 0;
  uint64_t lost_ = 0, unfinished_ = 0;
  BlockColumn<int64_t> start_, end_, bytes_, graph_node_;
  BlockColumn<uint32_t> correlation_, name_;
  BlockColumn<int32_t> device_, context_, stream_, grid_[3], block_[3], registers_,
      static_shared_, dynamic_shared_, src_device_, dst_device_, graph_;
  BlockColumn<uint8_t> kind_, type_, src_kind_, dst_kind_;
  std::vector<ExternalId> external_;
  std::vector<ApiCall> api_;
  std::vector<Overhead> overhead_;
  std::vector<MemoryEvent> memory_;
};

}  // namespace epprof
