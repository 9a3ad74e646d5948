// Schemas of payloads: which entries the structs of an application have, and where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/fork.h"
#include "nvtx/details.h"

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

// Guards what the next two return; null: there is none.
extern ForkSafeMutex schemas_mutex;
const std::vector<PayloadEntry>* schema(const Domain* domain, uint64_t id);
const Enumeration* enumeration(const Domain* domain, uint64_t id);

// NVTX calls these with the handle of a domain.
uint64_t register_schema(void* domain, const SchemaAttributes* attributes);
uint64_t register_enumeration(void* domain, const EnumerationAttributes* attributes);

// Of the predefined types. The size of another type, and of a text, is 0.
size_t size_of(uint64_t type);
inline bool is_text(uint64_t type) { return type == kText || type == kUtf8; }

}  // namespace epprof::nvtx
