// Domains, registered strings, and the details of ranges and marks besides their names.
#pragma once

#include <cwchar>
#include <unordered_map>

#include "nvtx/abi.h"

namespace epprof::nvtx {

// One per name for the whole process, because copies of NVTX in several libraries share it.
struct Domain {
  uint32_t name;  // 0: the default domain
  std::unordered_map<uint32_t, uint32_t> categories;  // number -> name, guarded in its .cpp
};

enum Flags : uint32_t { kHasColor = 1, kIsMark = 2 };

// Without padding, because it is compared and hashed as bytes.
struct Details {
  uint32_t domain;         // name
  uint32_t category;       // number; 0: none
  uint32_t category_name;  // 0: none
  uint32_t flags;
  uint32_t color;  // ARGB
  int32_t payload_type;
  uint64_t payload;  // of kExtended: a name with the text of a JSON object
};
static_assert(sizeof(Details) == 32);

uint32_t intern_wide(const wchar_t* text);
uint32_t intern_text(const char* text);
Domain* domain_of(const void* handle);  // null: the default domain
Domain* domain_named(uint32_t name);
void name_category(Domain* domain, uint32_t category, uint32_t name);

// Id of the details; equal details have the same id. It is 0 for a range of the default domain
// without details. Beyond the bounds, new details lose their payload first, then everything.
uint32_t details_id(const Domain* domain, const EventAttributes* attributes, bool is_mark);

}  // namespace epprof::nvtx
