// Where each field of CUPTI's records lies: told by epprof_nb/abi, mirrored in order by the enums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace epprof {

struct Field {
  int32_t code = -1;  // offset | width << 16 | signed << 24; -1: this version has no such field

  bool exists() const { return code >= 0; }
  template <typename To>
  To read(const unsigned char* record) const {
    if (code < 0) return To(0);
    const unsigned char* at = record + (code & 0xffff);
    switch (code >> 16) {
      case 1: return To(*at);
      case 2: return To(load<uint16_t>(at));
      case 4: return To(load<uint32_t>(at));
      case 8: return To(load<uint64_t>(at));
      case 1 | 256: return To(load<int8_t>(at));
      case 2 | 256: return To(load<int16_t>(at));
      case 4 | 256: return To(load<int32_t>(at));
      case 8 | 256: return To(load<int64_t>(at));
      default: return To(0);
    }
  }
  const void* pointer(const unsigned char* record) const {
    return code < 0 ? nullptr : load<const void*>(record + (code & 0xffff));
  }

 private:
  template <typename T>
  static T load(const unsigned char* at) {
    T value;
    memcpy(&value, at, sizeof value);
    return value;
  }
};

// The orders of epprof_nb.abi.cupti.NATIVE_RECORDS and NATIVE_CALLBACKS.
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

// Exactly the int32 array that Python hands over.
struct Layout {
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

  // Copies the array; false where its length is not a layout's.
  bool assign(const void* data, size_t bytes) {
    if (bytes != sizeof(Layout)) return false;
    ::memcpy(static_cast<void*>(this), data, bytes);
    return true;
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
};
static_assert(sizeof(Layout) % sizeof(int32_t) == 0, "an array of int32");

}  // namespace epprof
