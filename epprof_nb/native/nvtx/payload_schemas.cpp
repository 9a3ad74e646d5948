#include "nvtx/payload_schemas.h"

#include <algorithm>
#include <utility>

namespace epprof::nvtx {

ForkSafeMutex schemas_mutex;

namespace {

constexpr size_t kMaxEntries = 64;
constexpr size_t kMaxExtent = size_t(1) << 32;  // of an entry with all entries before it

using Key = std::pair<const Domain*, uint64_t>;

struct Schemas {
  std::map<Key, std::vector<PayloadEntry>> entries;
  std::map<Key, Enumeration> enumerations;
  uint64_t next_id = kFirstDynamicId;
};

auto& schemas = *new Schemas;  // never destroyed: threads may outlive static destructors

// The aligned offset of an entry without its own offset.
size_t aligned(size_t offset, size_t size) { return size ? (offset + size - 1) / size * size : offset; }

// The place of an entry in a payload.
struct Extent {
  size_t size;  // 0: unknown
  size_t alignment;
};

Extent extent_of(const Domain* domain, const SchemaEntry& entry) {
  if (entry.flags & kEntryIsPointer) return {sizeof(void*), alignof(void*)};
  uint64_t array = entry.flags & kEntryIsArray;
  bool is_fixed = array == kEntryIsFixedArray;
  if (entry.flags & kEntryIsElsewhere || (array && !is_fixed) || entry.length > kMaxExtent) {
    return {0, 1};
  }
  if (is_text(entry.type)) {
    if (entry.length || is_fixed) return {size_t(entry.length), 1};
    return {sizeof(const char*), alignof(const char*)};
  }
  const Enumeration* known = enumeration(domain, entry.type);
  size_t size = known ? known->size : size_of(entry.type);
  return {is_fixed ? size * size_t(entry.length) : size, size};
}

// Whether an entry can be read: a value in the payload, or a text that is not an array of variable
// length. A text without flags and length is a `const char*`: the application passes a C string that
// is valid during the call, as it does with the event's message. No other pointer or offset in a
// payload is followed. None is followed in a union, because another member may be in use.
bool is_readable(const SchemaEntry& entry, bool is_of_union) {
  if (entry.flags & kEntryIsElsewhere) return false;
  uint64_t array = entry.flags & kEntryIsArray;
  if (is_text(entry.type) && !entry.length) return !array && !is_of_union;
  return !array || (is_text(entry.type) && array == kEntryIsFixedArray);
}

}  // namespace

const std::vector<PayloadEntry>* schema(const Domain* domain, uint64_t id) {
  auto found = schemas.entries.find({domain, id});
  return found == schemas.entries.end() ? nullptr : &found->second;
}

const Enumeration* enumeration(const Domain* domain, uint64_t id) {
  auto found = schemas.enumerations.find({domain, id});
  return found == schemas.enumerations.end() ? nullptr : &found->second;
}

size_t size_of(uint64_t type) {
  switch (type) {
    case kChar: case kUchar: case kInt8: case kUint8: return 1;
    case kShort: case kUshort: case kInt16: case kUint16: return 2;
    case kInt: case kUint: case kInt32: case kUint32: case kSingle: case kFloat32: return 4;
    case kLong: case kUlong: return sizeof(long);
    case kLongLong: case kUlongLong: case kInt64: case kUint64: case kReal: case kFloat64:
    case kSize: case kAddress: return 8;
    default: return 0;
  }
}

uint64_t register_schema(void* handle, const SchemaAttributes* attributes) {
  if (!attributes || !attributes->entries) return 0;
  std::vector<PayloadEntry> entries;
  ForkLockGuard lock(schemas_mutex);
  const Domain* domain = domain_of(handle);
  bool is_union = attributes->type == kUnion;
  size_t end = 0;
  bool is_end_known = true;
  size_t count = attributes->type == kSelectedUnion ? 0 : attributes->entry_count;
  for (size_t i = 0; i < std::min(count, kMaxEntries); i++) {
    const SchemaEntry& given = attributes->entries[i];
    Extent extent = extent_of(domain, given);
    size_t offset = given.offset;
    if (!offset && i && !is_union) {  // it follows the previous entry
      if (!is_end_known) continue;
      size_t pack = attributes->alignment;
      offset = aligned(end, pack ? std::min(pack, extent.alignment) : extent.alignment);
    }
    is_end_known = extent.size && offset <= kMaxExtent;
    end = offset + extent.size;
    if (!given.name || !*given.name || !is_readable(given, is_union)) continue;
    entries.push_back({given.name, given.type, offset, size_t(given.length)});
  }
  uint64_t id = attributes->fields & kSchemaHasId ? attributes->id : schemas.next_id++;
  schemas.entries[{domain, id}] = std::move(entries);
  return id;
}

uint64_t register_enumeration(void* handle, const EnumerationAttributes* attributes) {
  if (!attributes || !attributes->entries) return 0;
  size_t size = attributes->size;
  if (size != 1 && size != 2 && size != 4 && size != 8) return 0;
  // The values of entries are sign-extended to 64 bits; a payload has `size` bytes of them.
  uint64_t mask = ~uint64_t(0) >> (64 - 8 * size);
  Enumeration made{size, false, {}};
  for (size_t i = 0; i < attributes->entry_count; i++) {
    const EnumerationEntry& entry = attributes->entries[i];
    if (entry.value & ~mask) made.is_signed = true;
    if (entry.name) made.names.emplace(entry.value & mask, entry.name);
  }
  ForkLockGuard lock(schemas_mutex);
  uint64_t id = attributes->fields & kEnumerationHasId ? attributes->id : schemas.next_id++;
  schemas.enumerations[{domain_of(handle), id}] = std::move(made);
  return id;
}

}  // namespace epprof::nvtx
