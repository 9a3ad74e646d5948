// Offset and width of each field in CUPTI's records, for one version of CUPTI. Python packs them
// (`packed_layout` in recording/cupti/loading.py); the structs below mirror the order.
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

// In the order of NATIVE_RECORDS and NATIVE_CALLBACKS in recording/cupti/layouts.py.
struct KernelFields {
  Field start, end, device, context, stream, grid_x, grid_y, grid_z, block_x, block_y, block_z,
      static_shared, dynamic_shared, registers, correlation, name, graph_node, graph;
};
struct MemcpyFields {
  Field start, end, bytes, copy_kind, src_kind, dst_kind, device, context, stream, correlation,
      graph_node, graph;
};
struct MemsetFields {
  Field start, end, bytes, memory_kind, device, context, stream, correlation, graph_node, graph;
};
struct SyncFields {
  Field sync_type, start, end, correlation, context, stream, event, event_sync;
};
struct PeerCopyFields {
  Field start, end, bytes, copy_kind, src_kind, dst_kind, device, context, stream, correlation,
      graph_node, graph, src_device, dst_device;
};
struct ApiFields {
  Field cbid, start, end, thread, correlation, result;
};
struct ExternalFields {
  Field id, correlation;
};
struct OverheadFields {
  Field kind, thread, start, end;
};
struct MemoryFields {
  Field operation, memory_kind, correlation, address, bytes, timestamp, pc, device, context, stream,
      name, is_async, pool_type, pool_address, pool_used, source;
};
struct EventFields {
  Field correlation, context, stream, event, device, timestamp, event_sync;
};
struct CallbackFields {
  Field site, params, result, context, data, correlation;
};
struct ResourceFields {
  Field context, handle, descriptor;
};
struct GraphFields {
  Field graph, node, original_node, graph_exec;
};

template <typename Fields>
struct Record {
  int32_t size = 0;
  Fields fields;
};

// Also in that order. Records of activities have the numbers of `ActivityKind`.
enum class RecordType : int32_t {
  none,
  kernel,
  memcpy,
  memset,
  synchronization,
  memcpy2,
  api,
  external,
  overhead,
  memory2,
  cuda_event
};

constexpr size_t kKinds = 128;

// Has the memory layout of the int32 array that Python passes.
struct RecordLayout {
  int32_t record_of_kind[kKinds];  // RecordType of each CUpti_ActivityKind
  Record<KernelFields> kernel;
  Record<MemcpyFields> memcpy;
  Record<MemsetFields> memset;
  Record<SyncFields> synchronization;
  Record<PeerCopyFields> memcpy2;
  Record<ApiFields> api;
  Record<ExternalFields> external;
  Record<OverheadFields> overhead;
  Record<MemoryFields> memory2;
  Record<EventFields> cuda_event;
  Record<CallbackFields> callback;
  Record<ResourceFields> resource;
  Record<GraphFields> graph;

  // Copies the array. Returns false if the size differs, or if a field's width differs from its
  // type here. The fields of all published versions of CUPTI have these widths.
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
      case RecordType::memset: return memset.size;
      case RecordType::synchronization: return synchronization.size;
      case RecordType::memcpy2: return memcpy2.size;
      case RecordType::api: return api.size;
      case RecordType::external: return external.size;
      case RecordType::overhead: return overhead.size;
      case RecordType::memory2: return memory2.size;
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
    auto optional = [](size_t width, Field f) { return f.code < 0 || f.has_width(width); };
    const auto& k = kernel.fields;
    const auto& c = memcpy.fields;
    const auto& p = memcpy2.fields;
    const auto& m = memset.fields;
    const auto& s = synchronization.fields;
    const auto& a = api.fields;
    const auto& o = overhead.fields;
    const auto& y = memory2.fields;
    const auto& e = cuda_event.fields;
    return optional(8, s.event_sync) && optional(8, e.event_sync) && optional(8, y.source) &&
           all(8, {k.start, k.end, k.name, k.graph_node, c.start, c.end, c.bytes, c.graph_node,
                   p.start, p.end, p.bytes, p.graph_node, m.start, m.end, m.bytes, m.graph_node,
                   s.start, s.end, a.start, a.end, external.fields.id, o.start, o.end, y.address,
                   y.bytes, y.timestamp}) &&
           all(4, {k.device, k.context, k.stream, k.grid_x, k.grid_y, k.grid_z, k.block_x,
                   k.block_y, k.block_z, k.static_shared, k.dynamic_shared, k.correlation, k.graph,
                   c.device, c.context, c.stream, c.correlation, c.graph, p.device, p.context,
                   p.stream, p.correlation, p.graph, p.src_device, p.dst_device, m.device,
                   m.context, m.stream, m.correlation, m.graph, s.sync_type, s.correlation, s.context,
                   s.stream, s.event, e.correlation, e.context, e.stream, e.event, a.cbid,
                   a.thread, a.correlation, a.result,
                   external.fields.correlation, o.kind, o.thread, y.operation, y.memory_kind,
                   y.correlation, y.device, y.context, y.stream, callback.fields.site, callback.fields.correlation}) &&
           all(2, {k.registers, m.memory_kind}) &&
           all(1, {c.copy_kind, c.src_kind, c.dst_kind, p.copy_kind, p.src_kind, p.dst_kind}) &&
           all(8, {callback.fields.params, callback.fields.result, callback.fields.context,
                   resource.fields.context, resource.fields.handle,
                   resource.fields.descriptor,
                   graph.fields.graph, graph.fields.node, graph.fields.original_node,
                   graph.fields.graph_exec});
  }
};
static_assert(sizeof(RecordLayout) % sizeof(int32_t) == 0, "consists of int32 only");

}  // namespace epprof
