#include "nvtx/range_details.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "core/columns.h"
#include "core/fork.h"
#include "core/string_table.h"
#include "nvtx/api.h"
#include "nvtx/payload_structs.h"

namespace epprof::nvtx {
namespace {

// Distinct combinations of arguments that a process keeps; further ranges have no payload. And
// combinations without payloads that it keeps then.
// A note of recording/nvtx/framework.py states the first one.
constexpr size_t kMaxCombinations = 1 << 20, kMaxWithoutPayload = 1 << 16;
std::atomic<uint64_t> dropped_details{0};

struct Hash {
  size_t operator()(const Details& details) const {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(&details), sizeof details});
  }
};
struct Equal {
  bool operator()(const Details& a, const Details& b) const {
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
};

struct Tables {
  std::deque<Domain> domains{{}};  // a deque keeps the addresses valid
  std::unordered_map<uint32_t, Domain*> by_name{{0, &domains[0]}};
  std::vector<Details> details{{}};
  std::unordered_map<Details, uint32_t, Hash, Equal> ids{{{}, 0}};

  // False if the details are new and the bound is reached.
  bool id(const Details& wanted, size_t bound, uint32_t* found) {
    auto known = ids.find(wanted);
    if (known == ids.end()) {
      if (details.size() >= bound) return false;
      known = ids.emplace(wanted, uint32_t(details.size())).first;
      details.push_back(wanted);
    }
    *found = known->second;
    return true;
  }
};

ForkSafeMutex details_mutex;
Tables& tables = *new Tables;  // never destroyed: threads may outlive static destructors

void add_utf8(std::string& text, uint32_t c) {
  if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
  if (c < 0x80) {
    text += char(c);
  } else if (c < 0x800) {
    text += {char(0xc0 | c >> 6), char(0x80 | (c & 0x3f))};
  } else if (c < 0x10000) {
    text += {char(0xe0 | c >> 12), char(0x80 | (c >> 6 & 0x3f)), char(0x80 | (c & 0x3f))};
  } else {
    text += {char(0xf0 | c >> 18), char(0x80 | (c >> 12 & 0x3f)), char(0x80 | (c >> 6 & 0x3f)),
             char(0x80 | (c & 0x3f))};
  }
}

}  // namespace

uint32_t intern_text(const char* text) { return intern(text && *text ? text : "(unnamed)"); }

uint32_t intern_wide(const wchar_t* text) {
  std::string utf8;
  for (; text && *text; text++) add_utf8(utf8, uint32_t(*text));
  return intern_text(utf8.c_str());
}

Domain* domain_of(const void* handle) {
  return handle ? static_cast<Domain*>(const_cast<void*>(handle)) : &tables.domains[0];
}

Domain* domain_named(uint32_t name) {
  ForkLockGuard lock(details_mutex);
  Domain*& domain = tables.by_name[name];
  if (!domain) domain = &tables.domains.emplace_back(Domain{name, {}});
  return domain;
}

void name_category(Domain* domain, uint32_t category, uint32_t name) {
  ForkLockGuard lock(details_mutex);
  domain->categories[category] = name;
}

uint32_t details_id(const Domain* domain, const EventAttributes* attributes, bool is_mark) {
  Details wanted{};
  wanted.domain = domain->name;
  if (is_mark) wanted.flags = kIsMark;
  if (attributes) {
    wanted.category = attributes->category;
    if (attributes->color_type == kArgb) {
      wanted.flags |= kHasColor;
      wanted.color = attributes->color;
    }
    if (attributes->payload_type > kNoPayload && attributes->payload_type <= kFloat) {
      wanted.payload_type = attributes->payload_type;
      bool is_short = attributes->payload_type > kDouble;
      wanted.payload = is_short ? uint32_t(attributes->payload) : attributes->payload;
    } else if (attributes->payload_type == kExtended) {
      wanted.payload = extended_payload(domain, attributes);
      if (wanted.payload) wanted.payload_type = kExtended;
    }
  }
  // Most threads repeat the details of the last range.
  thread_local Details last{};
  thread_local uint32_t last_id = 0;
  if (!wanted.category && Equal()(last, wanted)) return last_id;
  ForkLockGuard lock(details_mutex);
  if (wanted.category) {
    auto name = domain->categories.find(wanted.category);
    if (name != domain->categories.end()) wanted.category_name = name->second;
  }
  uint32_t id = 0;
  if (!tables.id(wanted, kMaxCombinations, &id)) {
    dropped_details++;
    wanted.payload_type = 0;
    wanted.payload = 0;
    tables.id(wanted, kMaxCombinations + kMaxWithoutPayload, &id);
    return id;
  }
  last = wanted;
  last_id = id;
  return id;
}

}  // namespace epprof::nvtx

using namespace epprof;
using namespace epprof::nvtx;

extern "C" epprof_columns* epprof_nvtx_details(uint32_t first) {
  std::vector<uint32_t> domain, category, category_name, flags, color;
  std::vector<int32_t> payload_type;
  std::vector<uint64_t> payload;
  {
    ForkLockGuard lock(details_mutex);
    for (size_t i = first; i < tables.details.size(); i++) {
      const Details& details = tables.details[i];
      domain.push_back(details.domain);
      category.push_back(details.category);
      category_name.push_back(details.category_name);
      flags.push_back(details.flags);
      color.push_back(details.color);
      payload_type.push_back(details.payload_type);
      payload.push_back(details.payload);
    }
  }
  auto* columns = new Columns;
  columns->add("domain", std::move(domain));
  columns->add("category", std::move(category));
  columns->add("category_name", std::move(category_name));
  columns->add("flags", std::move(flags));
  columns->add("color", std::move(color));
  columns->add("payload_type", std::move(payload_type));
  columns->add("payload", std::move(payload));
  return columns;
}

extern "C" uint64_t epprof_nvtx_dropped_details(void) { return epprof::nvtx::dropped_details; }
