#include "cupti/record_decoder.h"

#include "core/string_table.h"

namespace epprof {

uint32_t RecordDecoder::name_id(const char* name) {
  if (!live_ || !name) return 0;
  if (name == last_name_) return last_id_;
  auto found = name_ids_.find(name);
  uint32_t id = found != name_ids_.end() ? found->second : (name_ids_[name] = intern(name));
  last_name_ = name;
  last_id_ = id;
  return id;
}

namespace {

constexpr bool has_number(RecordType type, ActivityKind kind) { return uint32_t(type) == kind; }
static_assert(has_number(RecordType::kernel, kKernel) && has_number(RecordType::memcpy, kMemcpy) &&
              has_number(RecordType::memset, kMemset) &&
              has_number(RecordType::synchronization, kSynchronization));

// Decodes the fields that every activity has. Returns false for a record without timestamps, which
// a forced flush returned before the work finished. Write nothing more into the row then.
template <typename Fields>
bool decode_common_fields(const Fields& f, const unsigned char* r, ColumnBlock* b, size_t i,
                          ActivityKind kind) {
  b->kind[i] = kind;
  b->start[i] = f.start.template get<int64_t>(r);
  b->end[i] = f.end.template get<int64_t>(r);
  b->correlation[i] = f.correlation.template get<uint32_t>(r);
  b->context[i] = f.context.template get<int32_t>(r);
  b->stream[i] = f.stream.template get<int32_t>(r);
  return b->start[i] != 0 && b->end[i] != 0;
}

constexpr uint32_t kNoEvent = 0xffffffff;  // CUPTI_SYNCHRONIZATION_INVALID_VALUE

// A field that older versions lack.
uint64_t number_or_0(const Field& f, const unsigned char* r) {
  return f.code < 0 ? 0 : f.get<uint64_t>(r);
}

template <typename Fields>
void decode_graph_fields(const Fields& f, const unsigned char* r, ColumnBlock* b, size_t i) {
  b->device[i] = f.device.template get<int32_t>(r);
  b->graph[i] = f.graph.template get<int32_t>(r);
  b->graph_node[i] = f.graph_node.template get<int64_t>(r);
}

template <typename Fields>
bool decode_memcpy(const Fields& f, const unsigned char* r, ColumnBlock* b, size_t i) {
  if (!decode_common_fields(f, r, b, i, kMemcpy)) return false;
  b->bytes[i] = f.bytes.template get<int64_t>(r);
  b->copy_kind[i] = f.copy_kind.template get<uint8_t>(r);
  b->src_kind[i] = f.src_kind.template get<uint8_t>(r);
  b->dst_kind[i] = f.dst_kind.template get<uint8_t>(r);
  decode_graph_fields(f, r, b, i);
  return true;
}

}  // namespace

bool RecordDecoder::decode_activity(RecordType type, const unsigned char* r, ColumnBlock* b,
                                    size_t i) {
  switch (type) {
    case RecordType::kernel: {
      const KernelFields& f = layout_.kernel.fields;
      if (!decode_common_fields(f, r, b, i, kKernel)) return false;
      b->name[i] = name_id(f.name.get<const char*>(r));
      b->grid_x[i] = f.grid_x.get<int32_t>(r);
      b->grid_y[i] = f.grid_y.get<int32_t>(r);
      b->grid_z[i] = f.grid_z.get<int32_t>(r);
      b->block_x[i] = f.block_x.get<int32_t>(r);
      b->block_y[i] = f.block_y.get<int32_t>(r);
      b->block_z[i] = f.block_z.get<int32_t>(r);
      b->registers[i] = f.registers.get<uint16_t>(r);
      b->static_shared[i] = f.static_shared.get<int32_t>(r);
      b->dynamic_shared[i] = f.dynamic_shared.get<int32_t>(r);
      decode_graph_fields(f, r, b, i);
      return true;
    }
    case RecordType::memcpy: return decode_memcpy(layout_.memcpy.fields, r, b, i);
    case RecordType::memcpy2: {
      const PeerCopyFields& f = layout_.memcpy2.fields;
      if (!decode_memcpy(f, r, b, i)) return false;
      b->src_device[i] = f.src_device.get<int32_t>(r);
      b->dst_device[i] = f.dst_device.get<int32_t>(r);
      return true;
    }
    case RecordType::memset: {
      const MemsetFields& f = layout_.memset.fields;
      if (!decode_common_fields(f, r, b, i, kMemset)) return false;
      b->bytes[i] = f.bytes.get<int64_t>(r);
      b->dst_kind[i] = uint8_t(f.memory_kind.get<uint16_t>(r));
      decode_graph_fields(f, r, b, i);
      return true;
    }
    case RecordType::synchronization: {
      const SyncFields& f = layout_.synchronization.fields;
      if (!decode_common_fields(f, r, b, i, kSynchronization)) return false;
      b->sync_type[i] = uint8_t(f.sync_type.get<uint32_t>(r));
      uint32_t event = f.event.get<uint32_t>(r);
      if (event != kNoEvent) store_.add_awaited_event(number_or_0(f.event_sync, r), event);
      return true;
    }
    default: return false;
  }
}

void RecordDecoder::decode(const unsigned char* r, uint32_t kind) {
  RecordType type = layout_.type(kind);
  switch (type) {
    case RecordType::kernel:
    case RecordType::memcpy:
    case RecordType::memcpy2:
    case RecordType::memset:
    case RecordType::synchronization: {
      size_t row;
      ColumnBlock* block = store_.append_row(&row);
      if (!block) return;
      if (decode_activity(type, r, block, row)) {
        store_.commit_row(type != RecordType::synchronization && block->graph[row] == 0);
      } else {
        store_.count_unfinished();
      }
      return;
    }
    case RecordType::external: {
      const ExternalFields& f = layout_.external.fields;
      uint64_t id = f.id.get<uint64_t>(r);
      if (external_tag_) {
        if (id >> kOpBits != external_tag_) return;
        id &= (uint64_t(1) << kOpBits) - 1;
      }
      store_.add(ExternalId{f.correlation.get<uint32_t>(r), id});
      return;
    }
    case RecordType::api: {
      const ApiFields& f = layout_.api.fields;
      store_.add(ApiCall{f.start.get<int64_t>(r), f.end.get<int64_t>(r),
                         f.correlation.get<uint32_t>(r), f.cbid.get<uint32_t>(r),
                         f.thread.get<uint32_t>(r), f.result.get<int32_t>(r),
                         uint8_t(kind == 5)});  // CUPTI_ACTIVITY_KIND_RUNTIME
      return;
    }
    case RecordType::overhead: {
      const OverheadFields& f = layout_.overhead.fields;
      store_.add(Overhead{f.start.get<int64_t>(r), f.end.get<int64_t>(r), f.kind.get<uint32_t>(r),
                          f.thread.get<uint32_t>(r)});
      return;
    }
    case RecordType::memory2: {
      const MemoryFields& f = layout_.memory2.fields;
      store_.add(MemoryEvent{f.timestamp.get<int64_t>(r), f.address.get<uint64_t>(r),
                             f.bytes.get<uint64_t>(r), f.correlation.get<uint32_t>(r),
                             f.operation.get<uint32_t>(r), f.memory_kind.get<uint32_t>(r),
                             f.device.get<int32_t>(r), f.context.get<int32_t>(r),
                             f.stream.get<int32_t>(r),
                             f.source.code < 0 ? 0 : name_id(f.source.get<const char*>(r))});
      return;
    }
    case RecordType::cuda_event: {
      const EventFields& f = layout_.cuda_event.fields;
      store_.add(EventRecord{number_or_0(f.event_sync, r), f.correlation.get<uint32_t>(r),
                             f.event.get<uint32_t>(r), f.context.get<int32_t>(r),
                             f.stream.get<int32_t>(r)});
      return;
    }
    case RecordType::none: return;
  }
}

size_t decode_buffer(const unsigned char* raw, size_t bytes, const RecordLayout& layout,
                     ActivityStore& store) {
  RecordDecoder decoder(layout, store, false);
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
