#include "ort/event_details.h"

#include <string.h>

#include <deque>
#include <mutex>

#include "core/string_table.h"

namespace epprof::ort {
namespace {

uint64_t hash(const void* bytes, size_t length) {
  auto* at = static_cast<const unsigned char*>(bytes);
  uint64_t h = length * 0x9E3779B97F4A7C15u;
  while (length) {
    uint64_t word = 0;
    size_t step = length < 8 ? length : 8;
    memcpy(&word, at, step);
    h = (h ^ word) * 0xFF51AFD7ED558CCDu;
    h ^= h >> 32;
    at += step;
    length -= step;
  }
  return h | 1;  // 0 marks a free slot
}

// A thread's own table of what it has seen. Open addressing; grows by doubling.
template <typename Key>
class Seen {
 public:
  template <typename Equal, typename Fresh>
  uint32_t find(uint64_t h, Equal equal, Fresh fresh) {
    if (used_ * 2 >= slots_.size()) grow();
    size_t mask = slots_.size() - 1;
    for (size_t i = h & mask;; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.hash == h && equal(slot.key)) return slot.id;
      if (slot.hash) continue;
      fresh(&slot.key, &slot.id);
      slot.hash = h;
      used_++;
      return slot.id;
    }
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    Key key{};
    uint32_t id = 0;
  };

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 256 : slots_.size() * 2);
    old.swap(slots_);
    size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (!slot.hash) continue;
      size_t i = slot.hash & mask;
      while (slots_[i].hash) i = (i + 1) & mask;
      slots_[i] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

thread_local Seen<std::string_view> seen_names;
thread_local Seen<Details> seen_details;

bool same(const Details& a, const Details& b) { return memcmp(&a, &b, sizeof a) == 0; }

struct All {
  std::mutex mutex;
  std::deque<Details> details{Details{}};  // id 0: none
  Seen<Details> ids;
};

All& all() {
  static All* a = new All;  // never destroyed: threads may outlive static destructors
  return *a;
}

uint32_t keep(const Details& details, uint64_t h) {
  All& a = all();
  std::lock_guard<std::mutex> lock(a.mutex);
  return a.ids.find(
      h, [&](const Details& known) { return same(known, details); },
      [&](Details* key, uint32_t* id) {
        *key = details;
        *id = uint32_t(a.details.size());
        a.details.push_back(details);
      });
}

}  // namespace

uint32_t cached_name(std::string_view name) {
  if (name.empty()) return 0;
  return seen_names.find(
      hash(name.data(), name.size()), [&](std::string_view known) { return known == name; },
      [&](std::string_view* key, uint32_t* id) { *key = intern(name, id); });
}

uint32_t cached_details(const Details& details) {
  uint64_t h = hash(&details, sizeof details);
  return seen_details.find(
      h, [&](const Details& known) { return same(known, details); },
      [&](Details* key, uint32_t* id) {
        *key = details;
        *id = keep(details, h);
      });
}

std::vector<Details> details_from(uint32_t first) {
  All& a = all();
  std::lock_guard<std::mutex> lock(a.mutex);
  if (first >= a.details.size()) return {};
  return {a.details.begin() + first, a.details.end()};
}

}  // namespace epprof::ort
