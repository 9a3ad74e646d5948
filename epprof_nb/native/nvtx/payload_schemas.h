// Schemas of payloads: the entries of an application's structs, and their offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/fork.h"
#include "nvtx/range_details.h"

namespace epprof::nvtx {

struct PayloadEntry {
  std::string name;
  uint64_t type;
  size_t offset;
  size_t length;  // of a text in the payload; 0: a pointer
};

struct Enumeration {
  size_t size;
  bool is_signed;
  std::map<uint64_t, std::string> names;
};

// Guards the results of the next two functions, which are null without a match.
extern ForkSafeMutex schemas_mutex;
const std::vector<PayloadEntry>* schema(const Domain* domain, uint64_t id);
const Enumeration* enumeration(const Domain* domain, uint64_t id);

// NVTX calls these with the handle of a domain.
uint64_t register_schema(void* domain, const SchemaAttributes* attributes);
uint64_t register_enumeration(void* domain, const EnumerationAttributes* attributes);

// Size of a predefined type; 0 for other types and for text.
size_t size_of(uint64_t type);
inline bool is_text(uint64_t type) { return type == kText || type == kUtf8; }

}  // namespace epprof::nvtx
