#include "nvtx/payload_structs.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/fork.h"
#include "core/string_table.h"
#include "nvtx/api.h"
#include "nvtx/json_text.h"
#include "nvtx/payload_schemas.h"

namespace epprof::nvtx {
namespace {

constexpr size_t kMaxText = 256;  // bytes of a text in a payload
constexpr size_t kMaxPayloads = 16;
// Of a process; a note of recording/nvtx/framework.py states them.
constexpr size_t kMaxDistinct = 1 << 16, kMaxDistinctBytes = 1 << 26;

// Distinct payloads as JSON in the string table. They are bounded, because payloads that differ in
// each range would fill the table.
struct Distinct {
  std::unordered_map<std::string_view, uint32_t> ids;
  size_t bytes = 0;
};

ForkSafeMutex distinct_mutex;
auto& distinct = *new Distinct;  // never destroyed: threads may outlive static destructors
std::atomic<uint64_t> dropped_payloads{0};

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
bool add_value(std::string& json, const Domain* domain, const PayloadEntry& entry, const char* data,
               size_t size) {
  const Enumeration* names = enumeration(domain, entry.type);
  size_t length = names                 ? names->size
                  : is_text(entry.type) ? (entry.length ? entry.length : sizeof(const char*))
                                        : size_of(entry.type);
  if (!length || entry.offset > size || length > size - entry.offset) return false;
  data += entry.offset;
  if (names) {
    auto name = names->names.find(unsigned_at(data, length));
    if (name == names->names.end()) {
      add_number(json, data, names->is_signed ? kInt64 : kUint64, length);
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

// Id of a payload as JSON; 0 beyond the bounds.
uint32_t intern_payload(const std::string& json) {
  {
    ForkLockGuard lock(distinct_mutex);
    auto found = distinct.ids.find(json);
    if (found != distinct.ids.end()) return found->second;
    if (distinct.ids.size() >= kMaxDistinct || distinct.bytes + json.size() > kMaxDistinctBytes) {
      dropped_payloads++;
      return 0;
    }
  }
  uint32_t id;
  std::string_view stored = intern(json, &id);
  if (id == kOtherNamesId) {
    dropped_payloads++;
    return 0;
  }
  ForkLockGuard lock(distinct_mutex);
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
    ForkLockGuard lock(schemas_mutex);
    for (size_t i = 0; i < count; i++) {
      const std::vector<PayloadEntry>* entries = schema(domain, payloads[i].schema);
      if (!entries || !payloads[i].data) continue;
      auto* data = static_cast<const char*>(payloads[i].data);
      for (const PayloadEntry& entry : *entries) {
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

extern "C" uint64_t epprof_nvtx_dropped_payloads(void) { return epprof::nvtx::dropped_payloads; }
