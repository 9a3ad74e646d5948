// Raw CUPTI activity records into the columns of a Store, by a Layout.
#pragma once

#include <string>
#include <unordered_map>

#include "cupti/activity_store.h"
#include "cupti/record_layout.h"

namespace epprof {

class Decoder {
 public:
  Decoder(const Layout& layout, Store& store, bool live) :
      layout_(layout), store_(store), live_(live) {}
  // Kernel names are pointers: they are followed only in live buffers, and remembered only until
  // `forget_names`, because CUPTI may reuse an address.
  void decode(const unsigned char* record, uint32_t kind);
  void forget_names() { name_ids_.clear(); }

 private:
  bool decode_activity(RecordType type, const unsigned char* record, Block* block, size_t row);
  uint32_t name_id(const char* name);

  const Layout& layout_;
  Store& store_;
  bool live_;
  const char* last_name_ = nullptr;
  uint32_t last_id_ = 0;
  std::unordered_map<const char*, uint32_t> name_ids_;
};

// Walks a raw buffer by the layout's record sizes. Returns the bytes walked: fewer than `bytes`
// where a record of unknown kind or a truncated one ends the walk.
size_t decode_buffer(const unsigned char* raw, size_t bytes, const Layout& layout, Store& store);

}  // namespace epprof
