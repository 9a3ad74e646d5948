#include "nvtx/ranges.h"

#include <algorithm>
#include <vector>

#include "core/op_stack.h"
#include "core/records.h"

namespace epprof::nvtx {
namespace {

struct Open {
  const Domain* domain;
  uint64_t op_id;
};

struct OpenRanges {
  uint64_t epoch = 0;  // the recording that they belong to
  std::vector<Open> ranges;
};

// Empty unless recording. Ranges of an earlier recording are gone.
std::vector<Open>& open_ranges() {
  thread_local OpenRanges open;
  uint64_t now = epoch.load(std::memory_order_relaxed);
  if (open.epoch != now) {
    open.epoch = now;
    open.ranges.clear();
  }
  return open.ranges;
}

uint64_t open_range(const Domain* domain, uint32_t name, const EventAttributes* attributes,
                    bool is_mark) {
  uint32_t details = details_id(domain, attributes, is_mark);
  return push_op(name, kNvtxRange, details, nullptr, 0);
}

}  // namespace

int push_range(const Domain* domain, uint32_t name, const EventAttributes* attributes) {
  uint64_t op_id = open_range(domain, name, attributes, false);
  if (!op_id) return kNoTracking;
  std::vector<Open>& open = open_ranges();
  int below = int(std::count_if(open.begin(), open.end(),
                                [domain](const Open& range) { return range.domain == domain; }));
  open.push_back({domain, op_id});
  return below;
}

int pop_range(const Domain* domain) {
  if (!recording_ops.load(std::memory_order_relaxed)) return kNoTracking;
  std::vector<Open>& open = open_ranges();
  auto is_of_domain = [domain](const Open& range) { return range.domain == domain; };
  auto top = std::find_if(open.rbegin(), open.rend(), is_of_domain);
  if (top == open.rend()) return kNoTracking;
  pop_op(top->op_id);
  open.erase(std::next(top).base());
  return int(std::count_if(open.begin(), open.end(), is_of_domain));
}

uint64_t start_range(const Domain* domain, uint32_t name, const EventAttributes* attributes) {
  return open_range(domain, name, attributes, false);
}

void end_range(uint64_t id) {
  if (id) pop_op_of_any_thread(id);
}

void mark(const Domain* domain, uint32_t name, const EventAttributes* attributes) {
  pop_op(open_range(domain, name, attributes, true));
}

}  // namespace epprof::nvtx
