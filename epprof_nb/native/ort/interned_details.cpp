#include "ort/interned_details.h"

#include <string.h>

#include <deque>

#include "core/fork.h"
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

// Hash table of interned keys: one per thread, and a shared one. Open addressing; grows by
// doubling.
template <typename Key>
class InternTable {
 public:
  template <typename Equal, typename Add>
  uint32_t find_or_add(uint64_t h, Equal equal, Add add) {
    if (used_ * 2 >= slots_.size()) grow();
    size_t mask = slots_.size() - 1;
    for (size_t i = h & mask;; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.hash == h && equal(slot.key)) return slot.id;
      if (slot.hash) continue;
      add(&slot.key, &slot.id);
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

thread_local InternTable<std::string_view> thread_texts;
thread_local InternTable<EventDetails> thread_details;

bool equal(const EventDetails& a, const EventDetails& b) { return memcmp(&a, &b, sizeof a) == 0; }

struct SharedDetails {
  std::deque<EventDetails> details{EventDetails{}};  // id 0: none
  InternTable<EventDetails> ids;
};

ForkSafeMutex details_mutex;
SharedDetails& shared = *new SharedDetails;  // never destroyed: threads outlive static destructors

uint32_t intern_shared(const EventDetails& details, uint64_t h) {
  ForkLockGuard lock(details_mutex);
  return shared.ids.find_or_add(
      h, [&](const EventDetails& known) { return equal(known, details); },
      [&](EventDetails* key, uint32_t* id) {
        *key = details;
        *id = uint32_t(shared.details.size());
        shared.details.push_back(details);
      });
}

}  // namespace

uint32_t intern_event_text(std::string_view name) {
  if (name.empty()) return 0;
  return thread_texts.find_or_add(
      hash(name.data(), name.size()), [&](std::string_view known) { return known == name; },
      [&](std::string_view* key, uint32_t* id) { *key = intern(name, id); });
}

uint32_t intern_event_details(const EventDetails& details) {
  uint64_t h = hash(&details, sizeof details);
  return thread_details.find_or_add(
      h, [&](const EventDetails& known) { return equal(known, details); },
      [&](EventDetails* key, uint32_t* id) {
        *key = details;
        *id = intern_shared(details, h);
      });
}

std::vector<EventDetails> event_details_from(uint32_t first) {
  ForkLockGuard lock(details_mutex);
  if (first >= shared.details.size()) return {};
  return {shared.details.begin() + first, shared.details.end()};
}

}  // namespace epprof::ort
