// Intervals between the rounds of the sampler. They vary, and their mean keeps the cost low.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

namespace epprof {

// Sampling may take 1 / 300 of a core, and 1 / 100 in the first rounds, for short cells. With the
// time that a round takes, that is about 100 samples a second: docs and columns say so.
constexpr int64_t kPartOfCore = 300, kFirstPartOfCore = 100;
constexpr int kFirstRounds = 100;
// Mean intervals, ns. The longest is for hundreds of threads.
constexpr int64_t kShortestInterval = 1'000'000, kLongestInterval = 100'000'000;
// The first rounds read the code objects, so they cost more than later ones.
constexpr int kCostlyRounds = 20;
constexpr int64_t kLongestCostlyInterval = 10'000'000;

// A fixed interval could meet a loop at the same place each time.
class VaryingInterval {
 public:
  explicit VaryingInterval(uint64_t seed) : state_(seed | 1) {}

  int64_t around(int64_t mean) {  // uniform from half the mean to one and a half
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return mean / 2 + int64_t(state_ % uint64_t(mean));
  }

 private:
  uint64_t state_;
};

// The mean interval that keeps the cost below its share of a core. It averages over rounds: if one
// quick round shortened the next interval, stacks that are quick to read would count more.
class MeanInterval {
 public:
  int64_t next() {
    int64_t used = own_cpu_time();
    if (rounds_) cost_ += (used - used_ - cost_) / std::min(rounds_, kRecentRounds);
    used_ = used;
    int64_t part = rounds_ < kFirstRounds ? kFirstPartOfCore : kPartOfCore;
    return std::clamp(cost_ * part, kShortestInterval,
                      rounds_++ < kCostlyRounds ? kLongestCostlyInterval : kLongestInterval);
  }

 private:
  static constexpr int64_t kRecentRounds = 64;  // mostly longer than one turn of the program's loop

  static int64_t own_cpu_time() {
    timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return int64_t(used.tv_sec) * 1'000'000'000 + used.tv_nsec;
  }

  int64_t rounds_ = 0, used_ = 0, cost_ = 0;  // CPU time, ns: in all, and of a recent round
};

}  // namespace epprof
