// Decodes raw CUPTI activity records into an ActivityStore, by the record layout of a version.
#pragma once

#include <unordered_map>

#include "cupti/activity_store.h"
#include "cupti/record_layout.h"

namespace epprof {

class RecordDecoder {
 public:
  // live: the records are in CUPTI's own buffer, so pointers in them can be followed.
  RecordDecoder(const RecordLayout& layout, ActivityStore& store, bool live)
      : layout_(layout), store_(store), live_(live) {}
  void decode(const unsigned char* record, uint32_t kind);
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
  const char* last_name_ = nullptr;
  uint32_t last_id_ = 0;
  std::unordered_map<const char*, uint32_t> name_ids_;
};

// Decodes a copied buffer, record after record. Returns the number of bytes decoded, which is less
// than `bytes` if a record is truncated or of unknown kind.
size_t decode_buffer(const unsigned char* raw, size_t bytes, const RecordLayout& layout,
                     ActivityStore& store);

}  // namespace epprof
