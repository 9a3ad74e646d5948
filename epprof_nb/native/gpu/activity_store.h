// Decoded records of a GPU: activities as columns, the other records as rows.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/activity_kind.h"
#include "core/columns.h"

namespace epprof {

// The columns of activities, in blocks so that growing never moves a row. Fields that a kind lacks
// keep the values from `clear`: 0, or -1 for numbers that may be missing.
struct ColumnBlock {
  // Not a multiple of a page. Otherwise row i of every column would map to the same cache set.
  static constexpr size_t kRows = 8192 + 40;

  int64_t start[kRows], end[kRows], bytes[kRows], graph_node[kRows];
  uint32_t correlation[kRows], name[kRows];
  int32_t device[kRows], context[kRows], stream[kRows];
  int32_t grid_x[kRows], grid_y[kRows], grid_z[kRows];
  int32_t block_x[kRows], block_y[kRows], block_z[kRows];
  int32_t registers[kRows], static_shared[kRows], dynamic_shared[kRows];
  int32_t src_device[kRows], dst_device[kRows], graph[kRows];
  uint8_t kind[kRows];
  uint8_t copy_kind[kRows], src_kind[kRows], dst_kind[kRows], sync_type[kRows];  // 255: none

  void clear();
};

// Free blocks of the process, reused so that a later session causes no page faults.
std::unique_ptr<ColumnBlock> get_column_block();
void put_column_block(std::unique_ptr<ColumnBlock> block);
void trim_column_blocks();  // frees all but a few

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
  uint32_t source;  // name of the library that allocated it; 0: unknown
};

// A CUDA event was recorded in a stream.
struct EventRecord {
  uint64_t sync;  // CUPTI's number of this record; 0: this version has none
  uint32_t correlation, event;
  int32_t context, stream;
};

// The event that a synchronization waited for, and the number of its record.
struct AwaitedEvent {
  uint64_t sync;
  uint32_t row, event;
};

class ActivityStore {
 public:
  void set_record_limit(uint64_t max_records) { record_limit_ = max_records; }

  // The block and row of the next activity. Null if the limit is reached; the record then counts as
  // lost. Without `commit_row`, the next call returns the same row.
  ColumnBlock* append_row(size_t* row) {
    if (record_count_ >= record_limit_) {
      lost_++;
      own_launch_count_++;
      return nullptr;
    }
    if (row_ == ColumnBlock::kRows) {
      blocks_.push_back(get_column_block());
      row_ = 0;
    }
    *row = row_;
    return blocks_.back().get();
  }
  // own_launch: an API call launched only this activity; it is not part of a graph launch.
  void commit_row(bool own_launch) {
    own_launch_count_ += own_launch;
    row_++;
    record_count_++;
  }

  void add(const ExternalId& e) { if (has_capacity()) external_.push_back(e); }
  void add(const ApiCall& e) { if (has_capacity()) api_.push_back(e); }
  void add(const Overhead& e) { if (has_capacity()) overhead_.push_back(e); }
  void add(const MemoryEvent& e) { if (has_capacity()) memory_.push_back(e); }
  void add(const EventRecord& e) { if (has_capacity()) events_.push_back(e); }
  // For the activity that `append_row` returned and `commit_row` has not committed yet.
  void add_awaited_event(uint64_t sync, uint32_t event) {
    awaited_.push_back({sync, uint32_t((blocks_.size() - 1) * ColumnBlock::kRows + row_), event});
  }
  void count_unfinished() { unfinished_++; }
  void count_lost(uint64_t rows) { lost_ += rows; }

  // Number of activities with their own launch so far, including lost ones.
  int64_t own_launch_count() const { return own_launch_count_; }
  void reset_own_launch_count() { own_launch_count_ = 0; }

  // Moves all records out and restarts counting. counts: lost, unfinished, activities.
  void move_to_columns(Columns* columns, uint64_t counts[3]);

 private:
  using ColumnBlocks = std::vector<std::unique_ptr<ColumnBlock>>;

  bool has_capacity();  // counts the record, as kept or as lost
  template <typename T>
  void add_column(Columns* columns, const char* name, std::shared_ptr<ColumnBlocks> blocks,
                  size_t rows, T (ColumnBlock::*member)[ColumnBlock::kRows]);

  uint64_t record_limit_ = UINT64_MAX;
  uint64_t record_count_ = 0;  // of all tables
  uint64_t lost_ = 0, unfinished_ = 0;
  int64_t own_launch_count_ = 0;
  ColumnBlocks blocks_;
  size_t row_ = ColumnBlock::kRows;  // the next row of the last block
  std::vector<ExternalId> external_;
  std::vector<ApiCall> api_;
  std::vector<Overhead> overhead_;
  std::vector<MemoryEvent> memory_;
  std::vector<EventRecord> events_;
  std::vector<AwaitedEvent> awaited_;
};

}  // namespace epprof
