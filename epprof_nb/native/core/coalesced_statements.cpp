#include "core/coalesced_statements.h"

#include <algorithm>

namespace epprof {
namespace {

size_t hash(uint64_t parent, uint32_t key) {
  uint64_t h = (parent ^ (uint64_t(key) << 40 | key)) * 0x9E3779B97F4A7C15u;
  return size_t(h ^ (h >> 29));
}

}  // namespace

std::atomic<uint32_t> CoalescedStatements::bound_{UINT32_MAX};
std::atomic<uint32_t> CoalescedStatements::pairs_{0};

uint32_t CoalescedStatements::search(uint64_t parent, uint32_t key) {
  if (rows.size() * 2 >= slots_.size()) rehash(std::max<size_t>(1024, slots_.size() * 2));
  size_t mask = slots_.size() - 1;
  for (size_t i = hash(parent, key) & mask;; i = (i + 1) & mask) {
    if (slots_[i] == 0) {
      if (pairs_.load(std::memory_order_relaxed) >= bound_) return kNone;
      pairs_.fetch_add(1, std::memory_order_relaxed);
      CoalescedStatement row{};
      row.parent = parent;
      row.key = key;
      rows.push_back(row);
      slots_[i] = uint32_t(rows.size());
      return uint32_t(rows.size() - 1);
    }
    const CoalescedStatement& row = rows[slots_[i] - 1];
    if (row.parent == parent && row.key == key) return slots_[i] - 1;
  }
}

void CoalescedStatements::clear() {
  std::vector<CoalescedStatement>().swap(rows);
  std::vector<uint32_t>().swap(slots_);
}

void CoalescedStatements::rehash(size_t slots) {
  slots_.assign(slots, 0);
  for (size_t r = 0; r < rows.size(); r++) {
    size_t i = hash(rows[r].parent, rows[r].key) & (slots - 1);
    while (slots_[i]) i = (i + 1) & (slots - 1);
    slots_[i] = uint32_t(r + 1);
  }
}

}  // namespace epprof
