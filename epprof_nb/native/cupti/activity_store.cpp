#include "cupti/activity_store.h"

#include <string.h>

#include <algorithm>

namespace epprof {

bool Store::room() {
  if (held_ >= bound_) {
    lost_++;
    return false;
  }
  held_++;
  return true;
}

void Block::clear() {
  memset(bytes, 0, sizeof bytes);
  memset(graph_node, 0, sizeof graph_node);
  memset(name, 0, sizeof name);
  memset(graph, 0, sizeof graph);
  for (auto* column : {device, context, stream, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                       registers, static_shared, dynamic_shared, src_device, dst_device}) {
    memset(column, 0xff, kRows * sizeof *column);
  }
  for (auto* column : {type, src_kind, dst_kind}) memset(column, 0, kRows);
}

BlockPool& block_pool() {
  static BlockPool* pool = new BlockPool;
  return *pool;
}

std::unique_ptr<Block> BlockPool::get() {
  std::unique_ptr<Block> block;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!blocks_.empty()) {
      block = std::move(blocks_.back());
      blocks_.pop_back();
    }
  }
  if (!block) block.reset(new Block);
  block->clear();
  return block;
}

void BlockPool::put(std::unique_ptr<Block> block) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (blocks_.size() < kKept) blocks_.push_back(std::move(block));
}

namespace {

template <typename Row, typename T>
void row_column(Columns* columns, const char* name, const std::vector<Row>& rows, T Row::*member) {
  std::vector<T> values(rows.size());
  std::transform(rows.begin(), rows.end(), values.begin(),
                 [member](const Row& row) { return row.*member; });
  columns->add(name, std::move(values));
}

}  // namespace

bool Store::take_last_api(ApiCall* call) {
  if (api_.empty()) return false;
  *call = api_.back();
  api_.pop_back();
  held_--;
  return true;
}

template <typename T>
void Store::column(Columns* columns, const char* name, std::shared_ptr<Blocks> blocks,
                   size_t rows, T (Block::*member)[Block::kRows]) {
  Columns::Column result{name, {}, blocks};
  for (size_t b = 0; b * Block::kRows < rows; b++) {
    size_t here = std::min(Block::kRows, rows - b * Block::kRows);
    result.parts.push_back({(*blocks)[b].get()->*member, here * sizeof(T)});
  }
  columns->columns.push_back(std::move(result));
}

void Store::take(Columns* columns, uint64_t counts[3]) {
  size_t n = blocks_.empty() ? 0 : (blocks_.size() - 1) * Block::kRows + row_;
  // The columns point into the blocks, which return to the pool when the columns are freed.
  std::shared_ptr<Blocks> blocks(new Blocks(std::move(blocks_)), [](Blocks* taken) {
    for (auto& block : *taken) block_pool().put(std::move(block));
    delete taken;
  });
  blocks_ = Blocks();
  column(columns, "start_ns", blocks, n, &Block::start);
  column(columns, "end_ns", blocks, n, &Block::end);
  column(columns, "bytes", blocks, n, &Block::bytes);
  column(columns, "graph_node_id", blocks, n, &Block::graph_node);
  column(columns, "correlation_id", blocks, n, &Block::correlation);
  column(columns, "name_id", blocks, n, &Block::name);
  column(columns, "device_id", blocks, n, &Block::device);
  column(columns, "context_id", blocks, n, &Block::context);
  column(columns, "stream_id", blocks, n, &Block::stream);
  column(columns, "grid_x", blocks, n, &Block::grid_x);
  column(columns, "grid_y", blocks, n, &Block::grid_y);
  column(columns, "grid_z", blocks, n, &Block::grid_z);
  column(columns, "block_x", blocks, n, &Block::block_x);
  column(columns, "block_y", blocks, n, &Block::block_y);
  column(columns, "block_z", blocks, n, &Block::block_z);
  column(columns, "registers_per_thread", blocks, n, &Block::registers);
  column(columns, "static_shared_bytes", blocks, n, &Block::static_shared);
  column(columns, "dynamic_shared_bytes", blocks, n, &Block::dynamic_shared);
  column(columns, "src_device_id", blocks, n, &Block::src_device);
  column(columns, "dst_device_id", blocks, n, &Block::dst_device);
  column(columns, "graph_id", blocks, n, &Block::graph);
  column(columns, "kind", blocks, n, &Block::kind);
  column(columns, "type", blocks, n, &Block::type);
  column(columns, "src_kind", blocks, n, &Block::src_kind);
  column(columns, "dst_kind", blocks, n, &Block::dst_kind);
  row_column(columns, "external.correlation_id", external_, &ExternalId::correlation);
  row_column(columns, "external.id", external_, &ExternalId::id);
  row_column(columns, "api.start_ns", api_, &ApiCall::start);
  row_column(columns, "api.end_ns", api_, &ApiCall::end);
  row_column(columns, "api.correlation_id", api_, &ApiCall::correlation);
  row_column(columns, "api.cbid", api_, &ApiCall::cbid);
  row_column(columns, "api.thread_id", api_, &ApiCall::thread);
  row_column(columns, "api.return_value", api_, &ApiCall::result);
  row_column(columns, "api.runtime", api_, &ApiCall::runtime);
  row_column(columns, "overhead.start_ns", overhead_, &Overhead::start);
  row_column(columns, "overhead.end_ns", overhead_, &Overhead::end);
  row_column(columns, "overhead.kind", overhead_, &Overhead::kind);
  row_column(columns, "overhead.thread_id", overhead_, &Overhead::thread);
  row_column(columns, "memory.time_ns", memory_, &MemoryEvent::time);
  row_column(columns, "memory.address", memory_, &MemoryEvent::address);
  row_column(columns, "memory.bytes", memory_, &MemoryEvent::bytes);
  row_column(columns, "memory.correlation_id", memory_, &MemoryEvent::correlation);
  row_column(columns, "memory.operation", memory_, &MemoryEvent::operation);
  row_column(columns, "memory.memory_kind", memory_, &MemoryEvent::memory_kind);
  row_column(columns, "memory.device_id", memory_, &MemoryEvent::device);
  row_column(columns, "memory.context_id", memory_, &MemoryEvent::context);
  row_column(columns, "memory.stream_id", memory_, &MemoryEvent::stream);
  counts[0] = lost_;
  counts[1] = unfinished_;
  counts[2] = n;
  external_.clear();
  api_.clear();
  overhead_.clear();
  memory_.clear();
  row_ = Block::kRows;
  held_ = lost_ = unfinished_ = 0;
}

}  // namespace epprof
