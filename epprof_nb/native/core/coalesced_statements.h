// Statements that execute very often under one parent op share one row per drain.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace epprof {

// Executions of one statement under one parent op.
struct CoalescedStatement {
  uint64_t parent;
  uint64_t op_id;  // 0 until executions are coalesced
  int64_t first_start;
  int64_t last_end;
  int64_t duration;
  int64_t suspended;
  uint32_t key;
  uint32_t seen;   // executions with rows of their own
  uint32_t count;  // coalesced executions since the last drain
};

// (parent op, statement key) -> CoalescedStatement. Open addressing; grows by doubling. The pairs of
// all threads are bounded together.
class CoalescedStatements {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  static void set_bound(uint32_t pairs) { bound_ = pairs; }
  static void start_session() { pairs_ = 0; }

  // Index into `rows`; adds a row for a new pair. kNone if the bound is reached.
  uint32_t find_or_add(uint64_t parent, uint32_t key) {
    uint32_t& recent = recent_[key % kRecent];
    if (recent < rows.size() && rows[recent].key == key && rows[recent].parent == parent) {
      return recent;
    }
    uint32_t found = search(parent, key);
    if (found != kNone) recent = found;
    return found;
  }
  void clear();  // frees the memory
  std::vector<CoalescedStatement> rows;

 private:
  static constexpr size_t kRecent = 64;
  static std::atomic<uint32_t> bound_, pairs_;

  uint32_t search(uint64_t parent, uint32_t key);
  void rehash(size_t slots);
  std::vector<uint32_t> slots_;    // index + 1
  uint32_t recent_[kRecent] = {};  // a cache of indices: the statements of a loop repeat
};

}  // namespace epprof
