#include "nvtx/ranges.h"

#include <algorithm>
#include <vector>

#include "core/op_stack.h"
#include "core/records.h"
#include "nvtx/torch_operators.h"

namespace epprof::nvtx {

std::atomic<bool> recording_ranges{false};

namespace {

struct Open {
  const Domain* domain;
  uint64_t op_id;
};

struct OpenRanges {
  uint64_t epoch = 0;  // the recording that they belong to
  std::vector<Open> ranges;
};

// Empty unless recording. Ranges of earlier recordings are removed.
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
  if (!recording_ranges.load(std::memory_order_relaxed)) return 0;
  uint32_t details = details_id(domain, attributes, is_mark);
  return push_op(name, kNvtxRange, details, nullptr, 0);
}

}  // namespace

namespace {

// A range without a row, whose `op_id` is 0, is kept for its end.
int push_open(const Domain* domain, uint64_t op_id) {
  if (!recording_ops.load(std::memory_order_relaxed)) return kNoTracking;
  std::vector<Open>& open = open_ranges();
  int below = int(std::count_if(open.begin(), open.end(),
                                [domain](const Open& range) { return range.domain == domain; }));
  open.push_back({domain, op_id});
  return below;
}

}  // namespace

int push_range(const Domain* domain, uint32_t name, const EventAttributes* attributes) {
  return push_open(domain, open_range(domain, name, attributes, false));
}

int push_without_row(const Domain* domain) { return push_open(domain, 0); }

int push_operator_message(const char* message) {
  uint64_t op_id = 0;
  if (are_operators_recorded()) open_operator(message, &op_id);
  return push_open(domain_of(nullptr), op_id);
}

int push_message(const char* message) {
  const Domain* domain = domain_of(nullptr);
  uint64_t op_id;
  if (!are_operators_recorded() || !open_operator(message, &op_id)) {
    op_id = open_range(domain, intern_text(message), nullptr, false);
  }
  return push_open(domain, op_id);
}

int pop_range(const Domain* domain) {
  if (!recording_ops.load(std::memory_order_relaxed)) return kNoTracking;
  std::vector<Open>& open = open_ranges();
  auto is_of_domain = [domain](const Open& range) { return range.domain == domain; };
  auto top = std::find_if(open.rbegin(), open.rend(), is_of_domain);
  if (top == open.rend()) return kNoTracking;
  if (top->op_id) pop_op(top->op_id);
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
  if (uint64_t op_id = open_range(domain, name, attributes, true)) pop_op(op_id);
}

}  // namespace epprof::nvtx
