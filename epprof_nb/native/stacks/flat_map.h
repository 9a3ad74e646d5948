// A map from 64-bit hashes to 32-bit numbers, for lookups at each launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace epprof {

// Open addressing. Hashes are never 0 and stand for their values: among a million, two are equal
// once in 10^7 processes.
class FlatMap {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t find(uint64_t hash) const {
    if (slots_.empty()) return kNone;
    for (size_t i = hash & mask();; i = (i + 1) & mask()) {
      if (slots_[i].hash == hash) return slots_[i].number;
      if (!slots_[i].hash) return kNone;
    }
  }

  void insert(uint64_t hash, uint32_t number) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    place(hash, number);
    size_++;
  }

  void clear() {
    slots_ = {};
    size_ = 0;
  }

  size_t bytes() const { return slots_.size() * sizeof(Slot); }

 private:
  struct Slot {
    uint64_t hash;
    uint32_t number;
  };

  size_t mask() const { return slots_.size() - 1; }

  void place(uint64_t hash, uint32_t number) {
    size_t i = hash & mask();
    while (slots_[i].hash) i = (i + 1) & mask();
    slots_[i] = {hash, number};
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.hash) place(slot.hash, slot.number);
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace epprof
