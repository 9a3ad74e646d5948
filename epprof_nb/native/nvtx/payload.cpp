#include "nvtx/payload.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/fork.h"
#include "core/string_table.h"
#include "nvtx/api.h"

namespace epprof::nvtx {
namespace {

constexpr size_t kMaxText = 256;  // bytes of a text in a payload
constexpr size_t kMaxPayloads = 16, kMaxEntries = 64;
constexpr size_t kMaxDistinct = 1 << 16, kMaxDistinctBytes = 1 << 26;  // of a process
constexpr size_t kMaxExtent = size_t(1) << 32;  // of an entry, and of what is before it

struct Entry {
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

using Key = std::pair<const Domain*, uint64_t>;

struct Schemas {
  std::map<Key, std::vector<Entry>> entries;
  std::map<Key, Enumeration> enumerations;
  uint64_t next_id = kFirstDynamicId;
};

ForkSafeMutex mutex;
// Payloads as JSON, in the string table. They often differ in each range, and would fill it.
struct Distinct {
  std::unordered_map<std::string_view, uint32_t> ids;
  size_t bytes = 0;
};

auto& distinct = *new Distinct;
std::atomic<uint64_t> dropped{0};
auto& schemas = *new Schemas;  // never destroyed: threads may outlive static destructors

// Bytes of a UTF-8 character, by its first byte; 0: no character begins with it.
size_t utf8_length(unsigned char c) {
  if (c < 0x80) return 1;
  if (c < 0xc2 || c > 0xf4) return 0;
  return c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

bool is_utf8(const char* text, size_t length) {
  auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (size_t i = 1; i < length; i++) {
    if ((byte(i) & 0xc0) != 0x80) return false;
  }
  switch (byte(0)) {  // neither longer than necessary, nor a surrogate, nor beyond Unicode
    case 0xe0: return byte(1) >= 0xa0;
    case 0xed: return byte(1) < 0xa0;
    case 0xf0: return byte(1) >= 0x90;
    case 0xf4: return byte(1) < 0x90;
    default: return true;
  }
}

// Appends a text as JSON. Bytes that are no UTF-8 become replacement characters; of a text that is
// cut at its end, the last character is left out if it is not complete.
void add_quoted(std::string& json, const char* text, size_t length, bool is_cut = false) {
  json += '"';
  for (size_t i = 0; i < length; i++) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {
      size_t bytes = utf8_length(c);
      if (is_cut && bytes > length - i) break;
      if (bytes && bytes <= length - i && is_utf8(text + i, bytes)) {
        json.append(text + i, bytes);
        i += bytes - 1;
      } else {
        json += "\xef\xbf\xbd";
      }
      continue;
    }
    if (c == '"' || c == '\\') {
      json += {'\\', char(c)};
    } else if (c < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      json += escaped;
    } else {
      json += char(c);
    }
  }
  json += '"';
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

bool is_signed(uint64_t type) {
  switch (type) {
    case kChar: case kShort: case kInt: case kLong: case kLongLong:
    case kInt8: case kInt16: case kInt32: case kInt64: return true;
    default: return false;
  }
}

bool is_real(uint64_t type) {
  return type == kSingle || type == kFloat32 || type == kReal || type == kFloat64;
}

bool is_text(uint64_t type) { return type == kText || type == kUtf8; }

uint64_t unsigned_at(const char* data, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, data, size);  // little-endian
  return value;
}

void add_number(std::string& json, const char* data, uint64_t type, size_t size) {
  char text[40];
  if (is_real(type)) {
    double value;
    if (size == sizeof(float)) {
      float single;
      std::memcpy(&single, data, size);
      value = single;
    } else {
      std::memcpy(&value, data, size);
    }
    if (!std::isfinite(value)) {  // which JSON does not have
      json += "null";
      return;
    }
    std::snprintf(text, sizeof text, "%.17g", value);
  } else if (uint64_t bits = unsigned_at(data, size); is_signed(type)) {
    unsigned unused = unsigned(64 - 8 * size);
    std::snprintf(text, sizeof text, "%" PRId64, int64_t(bits << unused) >> unused);
  } else {
    std::snprintf(text, sizeof text, "%" PRIu64, bits);
  }
  json += text;
}

// Appends a value of a payload of `size` bytes; false if it cannot be read.
bool add_value(std::string& json, const Domain* domain, const Entry& entry, const char* data,
               size_t size) {
  auto enumeration = schemas.enumerations.find({domain, entry.type});
  bool is_enumeration = enumeration != schemas.enumerations.end();
  size_t length = is_enumeration          ? enumeration->second.size
                  : is_text(entry.type)   ? (entry.length ? entry.length : sizeof(const char*))
                                          : size_of(entry.type);
  if (!length || entry.offset > size || length > size - entry.offset) return false;
  data += entry.offset;
  if (is_enumeration) {
    auto name = enumeration->second.names.find(unsigned_at(data, length));
    if (name == enumeration->second.names.end()) {
      add_number(json, data, enumeration->second.is_signed ? kInt64 : kUint64, length);
    } else {
      add_quoted(json, name->second.data(), name->second.size());
    }
  } else if (is_text(entry.type)) {
    if (!entry.length) {
      std::memcpy(&data, data, sizeof data);
      length = kMaxText;
    }
    if (!data) return false;
    length = std::min(length, kMaxText);
    size_t used = strnlen(data, length);
    add_quoted(json, data, used, used == length);
  } else {
    add_number(json, data, entry.type, length);
  }
  return true;
}

// The alignment of an entry that has no offset of its own.
size_t aligned(size_t offset, size_t size) { return size ? (offset + size - 1) / size * size : offset; }

// What an entry takes in a payload.
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
  auto enumeration = schemas.enumerations.find({domain, entry.type});
  size_t size = enumeration != schemas.enumerations.end() ? enumeration->second.size
                                                          : size_of(entry.type);
  return {is_fixed ? size * size_t(entry.length) : size, size};
}

// Whether an entry can be read: a value in the payload, or a text that is not an array of variable
// length. A text without flags and length is a `const char*`: the application passes a C string that
// is valid during the call, as it does with the event's message. No other pointer or offset in a
// payload is followed, and none of a union, of which another member may be in use.
bool is_readable(const SchemaEntry& entry, bool is_of_union) {
  if (entry.flags & kEntryIsElsewhere) return false;
  uint64_t array = entry.flags & kEntryIsArray;
  if (is_text(entry.type) && !entry.length) return !array && !is_of_union;
  return !array || (is_text(entry.type) && array == kEntryIsFixedArray);
}

uint64_t register_schema(void* handle, const SchemaAttributes* attributes) {
  if (!attributes || !attributes->entries) return 0;
  std::vector<Entry> entries;
  ForkLockGuard lock(mutex);
  const Domain* domain = domain_of(handle);
  bool is_union = attributes->type == kUnion;
  size_t end = 0;
  bool is_end_known = true;
  size_t count = attributes->type == kSelectedUnion ? 0 : attributes->entry_count;
  for (size_t i = 0; i < std::min(count, kMaxEntries); i++) {
    const SchemaEntry& given = attributes->entries[i];
    Extent extent = extent_of(domain, given);
    size_t offset = given.offset;
    if (!offset && i && !is_union) {  // it follows the entry before
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
  ForkLockGuard lock(mutex);
  uint64_t id = attributes->fields & kEnumerationHasId ? attributes->id : schemas.next_id++;
  schemas.enumerations[{domain_of(handle), id}] = std::move(made);
  return id;
}

// Id of a payload as JSON; 0 beyond the bounds.
uint32_t intern_payload(const std::string& json) {
  {
    ForkLockGuard lock(mutex);
    auto found = distinct.ids.find(json);
    if (found != distinct.ids.end()) return found->second;
    if (distinct.ids.size() >= kMaxDistinct || distinct.bytes + json.size() > kMaxDistinctBytes) {
      dropped++;
      return 0;
    }
  }
  uint32_t id;
  std::string_view stored = intern(json, &id);
  if (id == kOtherNamesId) {
    dropped++;
    return 0;
  }
  ForkLockGuard lock(mutex);
  if (distinct.ids.emplace(stored, id).second) distinct.bytes += json.size();
  return id;
}

}  // namespace

uint32_t extended_payload(const Domain* domain, const EventAttributes* attributes) {
  auto* payloads = reinterpret_cast<const ExtendedPayload*>(uintptr_t(attributes->payload));
  if (!payloads || attributes->payload_count < 1) return 0;
  size_t count = std::min(size_t(attributes->payload_count), kMaxPayloads);
  std::string json = "{";
  {
    ForkLockGuard lock(mutex);
    for (size_t i = 0; i < count; i++) {
      auto found = schemas.entries.find({domain, payloads[i].schema});
      if (found == schemas.entries.end() || !payloads[i].data) continue;
      auto* data = static_cast<const char*>(payloads[i].data);
      for (const Entry& entry : found->second) {
        size_t before = json.size();
        if (before > 1) json += ',';
        add_quoted(json, entry.name.data(), entry.name.size());
        json += ':';
        if (!add_value(json, domain, entry, data, payloads[i].size)) json.resize(before);
      }
    }
  }
  return json.size() > 1 ? intern_payload(json + "}") : 0;
}

bool attach_extension(ExtensionModule* module) {
  if (!module || module->id != kPayloadModule || !module->segment_count) return false;
  ExtensionSegment& segment = module->segments[0];
  if (segment.slot_count <= kRegisterEnumeration) return false;
  segment.slots[kRegisterSchema] = reinterpret_cast<intptr_t>(register_schema);
  segment.slots[kRegisterEnumeration] = reinterpret_cast<intptr_t>(register_enumeration);
  return true;
}

}  // namespace epprof::nvtx

extern "C" uint64_t ep_nvtx_dropped_payloads(void) { return epprof::nvtx::dropped; }
