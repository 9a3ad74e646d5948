// Decodes raw CUPTI activity records into an ActivityStore, by the record layout of a version. The
// offsets of its fields come from recording/cupti/layouts.py.
#pragma once

#include <unordered_map>

#include "gpu/activity_store.h"
#include "cupti/record_layout.h"

namespace epprof {

// The bits of an external correlation id that hold an op id. The bits above hold the number of the
// recording, because an earlier recording or another profiler may have left ids on CUPTI's stacks.
constexpr uint32_t kOpBits = 40;

class RecordDecoder {
 public:
  // live: the records are in CUPTI's own buffer, so pointers in them can be followed.
  RecordDecoder(const RecordLayout& layout, ActivityStore& store, bool live)
      : layout_(layout), store_(store), live_(live) {}
  void decode(const unsigned char* record, uint32_t kind);
  // Keeps only external ids with this value above kOpBits, and removes it. 0: keeps all ids
  // unchanged.
  void set_external_tag(uint64_t tag) { external_tag_ = tag; }
  // Drops the cached kernel names. CUPTI may reuse their addresses once a buffer is decoded.
  void forget_names() {
    last_name_ = nullptr;
    name_ids_.clear();
  }

 private:
  bool decode_activity(RecordType type, const unsigned char* record, ColumnBlock* block,
                       size_t row);
  uint32_t name_id(const char* name);

  const RecordLayout& layout_;
  ActivityStore& store_;
  bool live_;
  uint64_t external_tag_ = 0;
  const char* last_name_ = nullptr;
  uint32_t last_id_ = 0;
  std::unordered_map<const char*, uint32_t> name_ids_;
};

// Decodes a copied buffer, record after record. Returns the number of bytes decoded, which is less
// than `bytes` if a record is truncated or of unknown kind.
size_t decode_buffer(const unsigned char* raw, size_t bytes, const RecordLayout& layout,
                     ActivityStore& store);

}  // namespace epprof
