#include "decode.h"

#include "names.h"

namespace epprof {

uint32_t Decoder::name_id(const char* name) {
  if (!live_ || !name) return 0;
  if (name == last_name_) return last_id_;
  auto found = name_ids_.find(name);
  uint32_t id = found != name_ids_.end() ? found->second : (name_ids_[name] = intern(name));
  last_name_ = name;
  last_id_ = id;
  return id;
}

void Decoder::decode(const unsigned char* r, uint32_t kind) {
  Activity a{};
  switch (layout_.type(kind)) {
    case RecordType::kernel: {
      const KernelFields& f = layout_.kernel.fields;
      a.kind = kKernel;
      a.start = f.start.read<int64_t>(r);
      a.end = f.end.read<int64_t>(r);
      a.correlation = f.correlation.read<uint32_t>(r);
      a.name = name_id(static_cast<const char*>(f.name.pointer(r)));
      a.device = f.device.read<int32_t>(r);
      a.context = f.context.read<int32_t>(r);
      a.stream = f.stream.read<int32_t>(r);
      a.grid[0] = f.grid_x.read<int32_t>(r);
      a.grid[1] = f.grid_y.read<int32_t>(r);
      a.grid[2] = f.grid_z.read<int32_t>(r);
      a.block[0] = f.block_x.read<int32_t>(r);
      a.block[1] = f.block_y.read<int32_t>(r);
      a.block[2] = f.block_z.read<int32_t>(r);
      a.registers = f.registers.read<int32_t>(r);
      a.static_shared = f.static_shared.read<int32_t>(r);
      a.dynamic_shared = f.dynamic_shared.read<int32_t>(r);
      a.graph = f.graph.read<int32_t>(r);
      a.graph_node = f.graph_node.read<int64_t>(r);
      break;
    }
    case RecordType::memcpy: {
      const MemcpyFields& f = layout_.memcpy.fields;
      a.kind = kMemcpy;
      a.start = f.start.read<int64_t>(r);
      a.end = f.end.read<int64_t>(r);
      a.correlation = f.correlation.read<uint32_t>(r);
      a.bytes = f.bytes.read<int64_t>(r);
      a.type = f.copy_kind.read<uint8_t>(r);
      a.src_kind = f.src_kind.read<uint8_t>(r);
      a.dst_kind = f.dst_kind.read<uint8_t>(r);
      a.device = f.device.read<int32_t>(r);
      a.context = f.context.read<int32_t>(r);
      a.stream = f.stream.read<int32_t>(r);
      a.graph = f.graph.read<int32_t>(r);
      a.graph_node = f.graph_node.read<int64_t>(r);
      break;
    }
    case RecordType::memcpy2: {
      const PeerCopyFields& f = layout_.memcpy2.fields;
      a.kind = kMemcpy;
      a.start = f.start.read<int64_t>(r);
      a.end = f.end.read<int64_t>(r);
      a.correlation = f.correlation.read<uint32_t>(r);
      a.bytes = f.bytes.read<int64_t>(r);
      a.type = f.copy_kind.read<uint8_t>(r);
      a.src_kind = f.src_kind.read<uint8_t>(r);
      a.dst_kind = f.dst_kind.read<uint8_t>(r);
      a.device = f.device.read<int32_t>(r);
      a.context = f.context.read<int32_t>(r);
      a.stream = f.stream.read<int32_t>(r);
      a.src_device = f.src_device.read<int32_t>(r);
      a.dst_device = f.dst_device.read<int32_t>(r);
      a.graph = f.graph.read<int32_t>(r);
      a.graph_node = f.graph_node.read<int64_t>(r);
      break;
    }
    case RecordType::memset: {
      const MemsetFields& f = layout_.memset.fields;
      a.kind = kMemset;
      a.start = f.start.read<int64_t>(r);
      a.end = f.end.read<int64_t>(r);
      a.correlation = f.correlation.read<uint32_t>(r);
      a.bytes = f.bytes.read<int64_t>(r);
      a.dst_kind = f.memory_kind.read<uint8_t>(r);
      a.device = f.device.read<int32_t>(r);
      a.context = f.context.read<int32_t>(r);
      a.stream = f.stream.read<int32_t>(r);
      a.graph = f.graph.read<int32_t>(r);
      a.graph_node = f.graph_node.read<int64_t>(r);
      break;
    }
    case RecordType::synchronization: {
      const SyncFields& f = layout_.synchronization.fields;
      a.kind = kSynchronization;
      a.start = f.start.read<int64_t>(r);
      a.end = f.end.read<int64_t>(r);
      a.correlation = f.correlation.read<uint32_t>(r);
      a.type = f.type.read<uint8_t>(r);
      a.context = f.context.read<int32_t>(r);
      a.stream = f.stream.read<int32_t>(r);
      break;
    }
    case RecordType::graph_trace: {
      const GraphTraceFields& f = layout_.graph_trace.fields;
      a.kind = kGraphLaunch;
      a.start = f.start.read<int64_t>(r);
      a.end = f.end.read<int64_t>(r);
      a.correlation = f.correlation.read<uint32_t>(r);
      a.device = f.device.read<int32_t>(r);
      a.context = f.context.read<int32_t>(r);
      a.stream = f.stream.read<int32_t>(r);
      a.graph = f.graph.read<int32_t>(r);
      break;
    }
    case RecordType::external: {
      const ExternalFields& f = layout_.external.fields;
      store_.add(ExternalId{f.correlation.read<uint32_t>(r), f.id.read<uint64_t>(r)});
      return;
    }
    case RecordType::api: {
      const ApiFields& f = layout_.api.fields;
      store_.add(ApiCall{f.start.read<int64_t>(r), f.end.read<int64_t>(r),
                         f.correlation.read<uint32_t>(r), f.cbid.read<uint32_t>(r),
                         f.thread.read<uint32_t>(r), f.result.read<int32_t>(r),
                         uint8_t(kind == 5)});  // CUPTI_ACTIVITY_KIND_RUNTIME
      return;
    }
    case RecordType::overhead: {
      const OverheadFields& f = layout_.overhead.fields;
      store_.add(Overhead{f.start.read<int64_t>(r), f.end.read<int64_t>(r),
                          f.kind.read<uint32_t>(r), f.thread.read<uint32_t>(r)});
      return;
    }
    case RecordType::memory2: {
      const MemoryFields& f = layout_.memory2.fields;
      store_.add(MemoryEvent{f.timestamp.read<int64_t>(r), f.address.read<uint64_t>(r),
                             f.bytes.read<uint64_t>(r), f.correlation.read<uint32_t>(r),
                             f.operation.read<uint32_t>(r), f.memory_kind.read<uint32_t>(r),
                             f.device.read<int32_t>(r), f.context.read<int32_t>(r),
                             f.stream.read<int32_t>(r)});
      return;
    }
    case RecordType::cuda_event:
    case RecordType::none: return;
  }
  // A record that a forced flush took before its work was done carries no times.
  if (a.start == 0 || a.end == 0) {
    store_.add_unfinished();
    return;
  }
  store_.add(a);
}

size_t decode_buffer(const unsigned char* raw, size_t bytes, const Layout& layout, Store& store) {
  Decoder decoder(layout, store, false);
  size_t at = 0;
  while (at + sizeof(uint32_t) <= bytes) {
    uint32_t kind;
    memcpy(&kind, raw + at, sizeof kind);
    int32_t size = layout.size(layout.type(kind));
    if (size <= 0 || size_t(size) > bytes - at) break;
    decoder.decode(raw + at, kind);
    at += size_t(size);
  }
  return at;
}

}  // namespace epprof
