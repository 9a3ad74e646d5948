#include "core/recording_costs.h"

#include <algorithm>
#include <atomic>

#include "core/clock.h"

namespace {

constexpr uint32_t kFirst = 64;  // events of a kind and thread that are all timed
constexpr uint32_t kGap = 32;    // mean number of later events from one that is timed to the next
// During more, ns, the thread had no core.
constexpr int64_t kLongestFirst = 300'000, kLongest = 100'000;
constexpr int64_t kStandsForMore = 1;    // the lowest bit of a begin: also for events not timed

std::atomic<int64_t> sums[EPPROF_COST_KINDS], events[EPPROF_COST_KINDS];
std::atomic<uint32_t> recording{1};

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
  int64_t ns = std::min(epprof_now_ns() - begin, is_first ? kLongestFirst : kLongest) - clock_ns();
  int64_t count = is_first ? 1 : kGap;
  sums[kind].fetch_add(std::max<int64_t>(ns, 0) * count, std::memory_order_relaxed);
  events[kind].fetch_add(count, std::memory_order_relaxed);
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
  if (begins) recording++;
  for (int kind = 0; kind < EPPROF_COST_KINDS; kind++) {
    ns[kind] = sums[kind].exchange(0);
    counts[kind] = events[kind].exchange(0);
  }
}

}  // extern "C"
