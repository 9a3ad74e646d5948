#include "store.h"

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

void Store::add(const Activity& a) {
  if (!room()) return;
  size_t row = activities_++;
  start_.put(row, a.start);
  end_.put(row, a.end);
  bytes_.put(row, a.bytes);
  graph_node_.put(row, a.graph_node);
  correlation_.put(row, a.correlation);
  name_.put(row, a.name);
  device_.put(row, a.device);
  context_.put(row, a.context);
  stream_.put(row, a.stream);
  for (int i = 0; i < 3; i++) {
    grid_[i].put(row, a.grid[i]);
    block_[i].put(row, a.block[i]);
  }
  registers_.put(row, a.registers);
  static_shared_.put(row, a.static_shared);
  dynamic_shared_.put(row, a.dynamic_shared);
  src_device_.put(row, a.src_device);
  dst_device_.put(row, a.dst_device);
  graph_.put(row, a.graph);
  kind_.put(row, a.kind);
  type_.put(row, a.type);
  src_kind_.put(row, a.src_kind);
  dst_kind_.put(row, a.dst_kind);
}

namespace {

template <typename Row, typename T>
void column(Columns* columns, const char* name, const std::vector<Row>& rows, T Row::*member) {
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

void Store::take(Columns* columns, uint64_t counts[3]) {
  size_t n = activities_;
  columns->add("start_ns", start_.take(n));
  columns->add("end_ns", end_.take(n));
  columns->add("bytes", bytes_.take(n));
  columns->add("graph_node_id", graph_node_.take(n));
  columns->add("correlation_id", correlation_.take(n));
  columns->add("name_id", name_.take(n));
  columns->add("device_id", device_.take(n));
  columns->add("context_id", context_.take(n));
  columns->add("stream_id", stream_.take(n));
  columns->add("grid_x", grid_[0].take(n));
  columns->add("grid_y", grid_[1].take(n));
  columns->add("grid_z", grid_[2].take(n));
  columns->add("block_x", block_[0].take(n));
  columns->add("block_y", block_[1].take(n));
  columns->add("block_z", block_[2].take(n));
  columns->add("registers_per_thread", registers_.take(n));
  columns->add("static_shared_bytes", static_shared_.take(n));
  columns->add("dynamic_shared_bytes", dynamic_shared_.take(n));
  columns->add("src_device_id", src_device_.take(n));
  columns->add("dst_device_id", dst_device_.take(n));
  columns->add("graph_id", graph_.take(n));
  columns->add("kind", kind_.take(n));
  columns->add("type", type_.take(n));
  columns->add("src_kind", src_kind_.take(n));
  columns->add("dst_kind", dst_kind_.take(n));
  column(columns, "external.correlation_id", external_, &ExternalId::correlation);
  column(columns, "external.id", external_, &ExternalId::id);
  column(columns, "api.start_ns", api_, &ApiCall::start);
  column(columns, "api.end_ns", api_, &ApiCall::end);
  column(columns, "api.correlation_id", api_, &ApiCall::correlation);
  column(columns, "api.cbid", api_, &ApiCall::cbid);
  column(columns, "api.thread_id", api_, &ApiCall::thread);
  column(columns, "api.return_value", api_, &ApiCall::result);
  column(columns, "api.runtime", api_, &ApiCall::runtime);
  column(columns, "overhead.start_ns", overhead_, &Overhead::start);
  column(columns, "overhead.end_ns", overhead_, &Overhead::end);
  column(columns, "overhead.kind", overhead_, &Overhead::kind);
  column(columns, "overhead.thread_id", overhead_, &Overhead::thread);
  column(columns, "memory.time_ns", memory_, &MemoryEvent::time);
  column(columns, "memory.address", memory_, &MemoryEvent::address);
  column(columns, "memory.bytes", memory_, &MemoryEvent::bytes);
  column(columns, "memory.correlation_id", memory_, &MemoryEvent::correlation);
  column(columns, "memory.operation", memory_, &MemoryEvent::operation);
  column(columns, "memory.memory_kind", memory_, &MemoryEvent::memory_kind);
  column(columns, "memory.device_id", memory_, &MemoryEvent::device);
  column(columns, "memory.context_id", memory_, &MemoryEvent::context);
  column(columns, "memory.stream_id", memory_, &MemoryEvent::stream);
  counts[0] = lost_;
  counts[1] = unfinished_;
  counts[2] = n;
  external_.clear();
  api_.clear();
  overhead_.clear();
  memory_.clear();
  activities_ = 0;
  held_ = lost_ = unfinished_ = 0;
}

}  // namespace epprof
