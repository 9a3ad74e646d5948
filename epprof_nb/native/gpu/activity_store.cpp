#include "gpu/activity_store.h"

#include <string.h>

#include <algorithm>

#include "core/fork.h"

namespace epprof {

bool ActivityStore::has_capacity() {
  if (record_count_ >= record_limit_) {
    lost_++;
    return false;
  }
  record_count_++;
  return true;
}

void ColumnBlock::clear() {
  memset(bytes, 0, sizeof bytes);
  memset(graph_node, 0, sizeof graph_node);
  memset(name, 0, sizeof name);
  memset(graph, 0, sizeof graph);
  for (auto* column : {device, context, stream, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                       registers, static_shared, dynamic_shared, src_device, dst_device}) {
    memset(column, 0xff, kRows * sizeof *column);
  }
  for (auto* column : {copy_kind, src_kind, dst_kind, sync_type}) memset(column, 0xff, kRows);
}

namespace {

// Columns are freed and decoded on different threads.
ForkSafeMutex mutex;
auto& free_blocks = *new std::vector<std::unique_ptr<ColumnBlock>>;
constexpr size_t kMaxFreeBlocks = 32, kBlocksKept = 4;

}  // namespace

std::unique_ptr<ColumnBlock> get_column_block() {
  std::unique_ptr<ColumnBlock> block;
  {
    ForkLockGuard lock(mutex);
    if (!free_blocks.empty()) {
      block = std::move(free_blocks.back());
      free_blocks.pop_back();
    }
  }
  if (!block) block.reset(new ColumnBlock);
  block->clear();
  return block;
}

void put_column_block(std::unique_ptr<ColumnBlock> block) {
  ForkLockGuard lock(mutex);
  if (free_blocks.size() < kMaxFreeBlocks) free_blocks.push_back(std::move(block));
}

void trim_column_blocks() {
  ForkLockGuard lock(mutex);
  if (free_blocks.size() > kBlocksKept) free_blocks.resize(kBlocksKept);
}

namespace {

template <typename Row, typename T>
void add_row_column(Columns* columns, const char* name, const std::vector<Row>& rows,
                    T Row::*member) {
  std::vector<T> values(rows.size());
  std::transform(rows.begin(), rows.end(), values.begin(),
                 [member](const Row& row) { return row.*member; });
  columns->add(name, std::move(values));
}

}  // namespace

template <typename T>
void ActivityStore::add_column(Columns* columns, const char* name,
                               std::shared_ptr<ColumnBlocks> blocks, size_t rows,
                               T (ColumnBlock::*member)[ColumnBlock::kRows]) {
  Columns::Column result{name, {}, blocks};
  for (size_t b = 0; b * ColumnBlock::kRows < rows; b++) {
    size_t here = std::min(ColumnBlock::kRows, rows - b * ColumnBlock::kRows);
    result.parts.push_back({(*blocks)[b].get()->*member, here * sizeof(T)});
  }
  columns->columns.push_back(std::move(result));
}

void ActivityStore::move_to_columns(Columns* columns, uint64_t counts[3]) {
  size_t n = blocks_.empty() ? 0 : (blocks_.size() - 1) * ColumnBlock::kRows + row_;
  // The columns point into the blocks. Freeing the columns returns the blocks to the pool.
  std::shared_ptr<ColumnBlocks> blocks(new ColumnBlocks(std::move(blocks_)), [](ColumnBlocks* b) {
    for (auto& block : *b) put_column_block(std::move(block));
    delete b;
  });
  blocks_ = ColumnBlocks();
  add_column(columns, "start_ns", blocks, n, &ColumnBlock::start);
  add_column(columns, "end_ns", blocks, n, &ColumnBlock::end);
  add_column(columns, "bytes", blocks, n, &ColumnBlock::bytes);
  add_column(columns, "graph_node_id", blocks, n, &ColumnBlock::graph_node);
  add_column(columns, "correlation_id", blocks, n, &ColumnBlock::correlation);
  add_column(columns, "name_id", blocks, n, &ColumnBlock::name);
  add_column(columns, "device_id", blocks, n, &ColumnBlock::device);
  add_column(columns, "context_id", blocks, n, &ColumnBlock::context);
  add_column(columns, "stream_id", blocks, n, &ColumnBlock::stream);
  add_column(columns, "grid_x", blocks, n, &ColumnBlock::grid_x);
  add_column(columns, "grid_y", blocks, n, &ColumnBlock::grid_y);
  add_column(columns, "grid_z", blocks, n, &ColumnBlock::grid_z);
  add_column(columns, "block_x", blocks, n, &ColumnBlock::block_x);
  add_column(columns, "block_y", blocks, n, &ColumnBlock::block_y);
  add_column(columns, "block_z", blocks, n, &ColumnBlock::block_z);
  add_column(columns, "registers_per_thread", blocks, n, &ColumnBlock::registers);
  add_column(columns, "static_shared_bytes", blocks, n, &ColumnBlock::static_shared);
  add_column(columns, "dynamic_shared_bytes", blocks, n, &ColumnBlock::dynamic_shared);
  add_column(columns, "src_device_id", blocks, n, &ColumnBlock::src_device);
  add_column(columns, "dst_device_id", blocks, n, &ColumnBlock::dst_device);
  add_column(columns, "graph_id", blocks, n, &ColumnBlock::graph);
  add_column(columns, "kind", blocks, n, &ColumnBlock::kind);
  add_column(columns, "copy_kind", blocks, n, &ColumnBlock::copy_kind);
  add_column(columns, "src_kind", blocks, n, &ColumnBlock::src_kind);
  add_column(columns, "dst_kind", blocks, n, &ColumnBlock::dst_kind);
  add_column(columns, "sync_type", blocks, n, &ColumnBlock::sync_type);
  add_row_column(columns, "external.correlation_id", external_, &ExternalId::correlation);
  add_row_column(columns, "external.id", external_, &ExternalId::id);
  add_row_column(columns, "api.start_ns", api_, &ApiCall::start);
  add_row_column(columns, "api.end_ns", api_, &ApiCall::end);
  add_row_column(columns, "api.correlation_id", api_, &ApiCall::correlation);
  add_row_column(columns, "api.cbid", api_, &ApiCall::cbid);
  add_row_column(columns, "api.thread_id", api_, &ApiCall::thread);
  add_row_column(columns, "api.return_value", api_, &ApiCall::result);
  add_row_column(columns, "api.runtime", api_, &ApiCall::runtime);
  add_row_column(columns, "overhead.start_ns", overhead_, &Overhead::start);
  add_row_column(columns, "overhead.end_ns", overhead_, &Overhead::end);
  add_row_column(columns, "overhead.kind", overhead_, &Overhead::kind);
  add_row_column(columns, "overhead.thread_id", overhead_, &Overhead::thread);
  add_row_column(columns, "memory.time_ns", memory_, &MemoryEvent::time);
  add_row_column(columns, "memory.address", memory_, &MemoryEvent::address);
  add_row_column(columns, "memory.bytes", memory_, &MemoryEvent::bytes);
  add_row_column(columns, "memory.correlation_id", memory_, &MemoryEvent::correlation);
  add_row_column(columns, "memory.operation", memory_, &MemoryEvent::operation);
  add_row_column(columns, "memory.memory_kind", memory_, &MemoryEvent::memory_kind);
  add_row_column(columns, "memory.device_id", memory_, &MemoryEvent::device);
  add_row_column(columns, "memory.context_id", memory_, &MemoryEvent::context);
  add_row_column(columns, "memory.stream_id", memory_, &MemoryEvent::stream);
  add_row_column(columns, "memory.source_id", memory_, &MemoryEvent::source);
  add_row_column(columns, "event.sync_id", events_, &EventRecord::sync);
  add_row_column(columns, "event.event_id", events_, &EventRecord::event);
  add_row_column(columns, "event.correlation_id", events_, &EventRecord::correlation);
  add_row_column(columns, "event.context_id", events_, &EventRecord::context);
  add_row_column(columns, "event.stream_id", events_, &EventRecord::stream);
  add_row_column(columns, "awaited.row", awaited_, &AwaitedEvent::row);
  add_row_column(columns, "awaited.event_id", awaited_, &AwaitedEvent::event);
  add_row_column(columns, "awaited.sync_id", awaited_, &AwaitedEvent::sync);
  counts[0] = lost_;
  counts[1] = unfinished_;
  counts[2] = n;
  external_.clear();
  api_.clear();
  overhead_.clear();
  memory_.clear();
  events_.clear();
  awaited_.clear();
  row_ = ColumnBlock::kRows;
  record_count_ = lost_ = unfinished_ = 0;
}

}  // namespace epprof
