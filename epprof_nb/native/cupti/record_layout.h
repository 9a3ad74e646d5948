// Offset and width of each field in CUPTI's records, for one version of CUPTI. Python packs them
// (`packed_layout` of the CUPTI recorder); the structs below mirror the order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace epprof {

struct Field {
  int32_t code = -1;  // offset | width << 16 | signed << 24; -1: this version lacks the field

  bool has_width(size_t width) const { return code >= 0 && ((code >> 16) & 0xff) == int(width); }
  // The field's value. T must have the field's width, which `RecordLayout::assign` checks.
  template <typename T>
  T get(const unsigned char* record) const {
    T value;
    memcpy(&value, record + (code & 0xffff), sizeof value);
    return value;
  }
};

// In the order of NATIVE_RECORDS and NATIVE_CALLBACKS in the Python module of the layouts.
struct KernelFields {
  Field start, end, completed, device, context, stream, grid_x, grid_y, grid_z, block_x, block_y,
      block_z, static_shared, dynamic_shared, local_per_thread, registers, correlation, grid_id,
      name, queued, submitted, graph_node, graph, channel, source_node, priority;
};
struct MemcpyFields {
  Field start, end, bytes, copy_kind, src_kind, dst_kind, flags, device, context, stream,
      correlation, graph_node, graph, source_node;
};
struct PeerCopyFields {
  Field start, end, bytes, copy_kind, src_kind, dst_kind, flags, device, context, stream,
      correlation, graph_node, graph, src_device, dst_device;
};
struct MemsetFields {
  Field start, end, bytes, value, memory_kind, device, context, stream, correlation, graph_node,
      graph, flags, source_node;
};
struct ApiFields {
  Field kind, cbid, start, end, process, thread, correlation, result;
};
struct SyncFields {
  Field type, start, end, correlation, context, stream, event, event_sync, result;
};
struct ExternalFields {
  Field kind, id, correlation;
};
struct OverheadFields {
  Field kind, object_kind, process, thread, device, context, stream, start, end, correlation;
};
struct MemoryFields {
  Field operation, memory_kind, correlation, address, bytes, timestamp, pc, process, device,
      context, stream, name, is_async, pool_type, pool_address, pool_used, source;
};
struct GraphTraceFields {
  Field start, end, device, context, stream, correlation, graph, end_device, end_context;
};
struct EventFields {
  Field correlation, context, stream, event, device, timestamp, event_sync;
};
struct CallbackFields {
  Field site, function_name, params, result, symbol, context, context_uid, data, correlation;
};
struct ResourceFields {
  Field context, handle, descriptor;
};
struct GraphFields {
  Field graph, original_graph, node, original_node, node_type, dependency, graph_exec;
};

template <typename Fields>
struct Record {
  int32_t size = 0;
  Fields fields;
};

enum class RecordType : int32_t {
  none = -1,
  kernel,
  memcpy,
  memcpy2,
  memset,
  api,
  synchronization,
  external,
  overhead,
  memory2,
  graph_trace,
  cuda_event
};

constexpr size_t kKinds = 128;

// Has the memory layout of the int32 array that Python passes.
struct RecordLayout {
  int32_t record_of_kind[kKinds];  // RecordType of each CUpti_ActivityKind
  Record<KernelFields> kernel;
  Record<MemcpyFields> memcpy;
  Record<PeerCopyFields> memcpy2;
  Record<MemsetFields> memset;
  Record<ApiFields> api;
  Record<SyncFields> synchronization;
  Record<ExternalFields> external;
  Record<OverheadFields> overhead;
  Record<MemoryFields> memory2;
  Record<GraphTraceFields> graph_trace;
  Record<EventFields> cuda_event;
  Record<CallbackFields> callback;
  Record<ResourceFields> resource;
  Record<GraphFields> graph;

  // Copies the array. Returns false if it has another size, or if a field has another width than
  // the one it is read with. The fields of all published versions of CUPTI have these widths.
  bool assign(const void* data, size_t bytes) {
    if (bytes != sizeof(RecordLayout)) return false;
    ::memcpy(static_cast<void*>(this), data, bytes);
    return widths_are_known();
  }
  RecordType type(uint32_t kind) const {
    return kind < kKinds ? RecordType(record_of_kind[kind]) : RecordType::none;
  }
  int32_t size(RecordType type) const {
    switch (type) {
      case RecordType::kernel: return kernel.size;
      case RecordType::memcpy: return memcpy.size;
      case RecordType::memcpy2: return memcpy2.size;
      case RecordType::memset: return memset.size;
      case RecordType::api: return api.size;
      case RecordType::synchronization: return synchronization.size;
      case RecordType::external: return external.size;
      case RecordType::overhead: return overhead.size;
      case RecordType::memory2: return memory2.size;
      case RecordType::graph_trace: return graph_trace.size;
      case RecordType::cuda_event: return cuda_event.size;
      case RecordType::none: return 0;
    }
    return 0;
  }

 private:
  bool widths_are_known() const {
    auto all = [](size_t width, std::initializer_list<Field> fields) {
      for (Field f : fields) if (!f.has_width(width)) return false;
      return true;
    };
    const auto& k = kernel.fields;
    const auto& c = memcpy.fields;
    const auto& p = memcpy2.fields;
    const auto& m = memset.fields;
    const auto& s = synchronization.fields;
    const auto& a = api.fields;
    const auto& o = overhead.fields;
    const auto& y = memory2.fields;
    const auto& g = graph_trace.fields;
    return all(8, {k.start, k.end, k.name, k.graph_node, c.start, c.end, c.bytes, c.graph_node,
                   p.start, p.end, p.bytes, p.graph_node, m.start, m.end, m.bytes, m.graph_node,
                   s.start, s.end, a.start, a.end, external.fields.id, o.start, o.end, y.address,
                   y.bytes, y.timestamp, g.start, g.end}) &&
           all(4, {k.device, k.context, k.stream, k.grid_x, k.grid_y, k.grid_z, k.block_x,
                   k.block_y, k.block_z, k.static_shared, k.dynamic_shared, k.correlation, k.graph,
                   c.device, c.context, c.stream, c.correlation, c.graph, p.device, p.context,
                   p.stream, p.correlation, p.graph, p.src_device, p.dst_device, m.device,
                   m.context, m.stream, m.correlation, m.graph, s.type, s.correlation, s.context,
                   s.stream, a.cbid, a.thread, a.correlation, a.result,
                   external.fields.correlation, o.kind, o.thread, y.operation, y.memory_kind,
                   y.correlation, y.device, y.context, y.stream, g.device, g.context, g.stream,
                   g.correlation, g.graph, callback.fields.site, callback.fields.correlation}) &&
           all(2, {k.registers, m.memory_kind}) &&
           all(1, {c.copy_kind, c.src_kind, c.dst_kind, p.copy_kind, p.src_kind, p.dst_kind}) &&
           all(8, {callback.fields.params, callback.fields.result, callback.fields.context,
                   resource.fields.context, resource.fields.descriptor,
                   graph.fields.graph, graph.fields.node, graph.fields.original_node,
                   graph.fields.graph_exec});
  }
};
static_assert(sizeof(RecordLayout) % sizeof(int32_t) == 0, "consists of int32 only");

}  // namespace epprof
