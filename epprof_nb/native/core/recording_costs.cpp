#include "core/recording_costs.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>

#include "core/clock.h"
#include "core/fork.h"
#include "core/thread_state.h"

namespace epprof {
namespace {

constexpr uint32_t kFirst = 64;  // events of a kind and thread that are all timed
constexpr uint32_t kGap = 32;    // mean number of later events from one that is timed to the next
// During more, ns, the thread had no core.
constexpr int64_t kLongestFirst = 300'000, kLongest = 100'000;
constexpr int64_t kStandsForMore = 1;    // the lowest bit of a begin: also for events not timed

std::atomic<int64_t> sums[EPPROF_COST_KINDS], events[EPPROF_COST_KINDS];
std::atomic<uint32_t> recording{1};

// By op and kind, as in the header. Only sampled events take the lock.
constexpr size_t kMaxOps = 1 << 16;
struct Sum {
  int64_t ns, events;
};
std::unordered_map<uint64_t, Sum>* of_ops = new std::unordered_map<uint64_t, Sum>;  // op * kinds + kind
ForkSafeMutex of_ops_mutex;

bool has_no_op(int kind) { return kind == EPPROF_COST_STATEMENTS || kind >= EPPROF_COST_SUSPENSIONS; }

void add_to_op(int kind, int64_t ns, int64_t count) {
  ThreadState* t = this_thread();
  uint64_t op = t ? t->top_op.load(std::memory_order_relaxed) : 0;
  if (!op) return;
  ForkLockGuard lock(of_ops_mutex);
  uint64_t key = op * EPPROF_COST_KINDS + uint64_t(kind);
  if (of_ops->size() >= kMaxOps && !of_ops->count(key)) return;
  Sum& sum = (*of_ops)[key];
  sum.ns += ns;
  sum.events += count;
}

struct Sampling {
  uint32_t recording = 0, first = 0, left = 0, random = 1;
};
thread_local Sampling sampling[EPPROF_COST_KINDS];

int64_t clock_ns() {
  static const int64_t least = [] {
    int64_t found = kLongest;
    for (int i = 0; i < 50; i++) {
      int64_t begin = epprof_now_ns();
      found = std::min(found, epprof_now_ns() - begin);
    }
    return found;
  }();
  return least;
}

}  // namespace
}  // namespace epprof

using namespace epprof;

extern "C" {

// The gap varies, so that loops do not always time the same event.
int64_t epprof_cost_begin(int kind) {
  Sampling& s = sampling[kind];
  uint32_t now = recording.load(std::memory_order_relaxed);
  if (s.recording != now) s = {now, kFirst, 1, s.random};
  if (--s.left) return 0;
  s.left = 1;
  if (s.first) {
    s.first--;
    return epprof_now_ns() & ~kStandsForMore;
  }
  s.random = s.random * 1664525 + 1013904223;
  s.left += (s.random >> 16) % (2 * kGap - 1);
  return epprof_now_ns() | kStandsForMore;
}

int64_t epprof_cost_resume(int64_t begin) {
  return begin ? (epprof_now_ns() & ~kStandsForMore) | (begin & kStandsForMore) : 0;
}

void epprof_cost_end(int kind, int64_t begin) {
  if (!begin) return;
  bool is_first = !(begin & kStandsForMore);
  int64_t ns = epprof_now_ns() - begin - clock_ns(), longest = is_first ? kLongestFirst : kLongest;
  if (ns > longest) {  // it took as long as others, and one that is timed stands for many
    int64_t others = events[kind].load(std::memory_order_relaxed);
    ns = others ? sums[kind].load(std::memory_order_relaxed) / others : longest;
  }
  int64_t count = is_first ? 1 : kGap;
  ns = std::max<int64_t>(ns, 0) * count;
  sums[kind].fetch_add(ns, std::memory_order_relaxed);
  events[kind].fetch_add(count, std::memory_order_relaxed);
  if (has_no_op(kind)) add_to_op(kind, ns, count);
}

void epprof_cost_add(int kind, int64_t begin) {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  sums[kind].fetch_add(int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec - begin,
                       std::memory_order_relaxed);
  events[kind].fetch_add(1, std::memory_order_relaxed);
}

void epprof_take_costs(int64_t ns[EPPROF_COST_KINDS], int64_t counts[EPPROF_COST_KINDS],
                       int begins) {
  if (begins) {
    recording++;
    ForkLockGuard lock(of_ops_mutex);
    of_ops->clear();
  }
  for (int kind = 0; kind < EPPROF_COST_KINDS; kind++) {
    ns[kind] = sums[kind].exchange(0);
    counts[kind] = events[kind].exchange(0);
  }
}

int epprof_take_op_cost(epprof_op_cost* cost) {
  ForkLockGuard lock(of_ops_mutex);
  if (of_ops->empty()) return 0;
  auto first = of_ops->begin();
  *cost = {first->first / EPPROF_COST_KINDS, int32_t(first->first % EPPROF_COST_KINDS),
           first->second.ns, first->second.events};
  of_ops->erase(first);
  return 1;
}

}  // extern "C"
