// The lanes of devices and their contexts, with their running and ended activities.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "analysis/api.h"

namespace epprof {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

// Lengths of the longest paths to a point in time. Each variant has other factors.
template <size_t K>
using Distances = std::array<int64_t, K>;

template <size_t K>
void take_longer(Distances<K>& distance, const Distances<K>& other) {
  for (size_t k = 0; k < K; k++) distance[k] = std::max(distance[k], other[k]);
}

// The ended activities of a lane or context.
template <size_t K>
struct Done {
  int64_t end = kNever;
  int32_t last = -1;     // row that ended last
  int32_t longest = -1;  // row with the greatest distance
  Distances<K> distance{};

  void add(int64_t ended, int32_t row, int32_t by, const Distances<K>& from) {
    if (ended >= end) {
      end = ended;
      last = row;
    }
    if (longest < 0 || from[0] >= distance[0]) longest = by;
    take_longer(distance, from);
  }

  void add(const Done& other) {
    if (other.last >= 0) add(other.end, other.last, other.longest, other.distance);
  }
};

template <size_t K>
class Lanes {
 public:
  explicit Lanes(const epprof_path_input& in) : in_(in), lanes_(in.lanes) {
    int32_t contexts = 0, marks = -1;
    for (size_t i = 0; i < in.activities; i++) marks = std::max(marks, in.activity_mark[i]);
    marks_.resize(static_cast<size_t>(marks + 1));
    for (size_t i = 0; i < in.lanes; i++) contexts = std::max(contexts, in.lane_context[i] + 1);
    contexts_.resize(static_cast<size_t>(contexts));
    for (size_t i = 0; i < in.lanes; i++) context_of(i).lanes.push_back(static_cast<int32_t>(i));
  }

  // An activity starts on a lane.
  void start(size_t number, int64_t end, int32_t row, const Distances<K>& distance) {
    Lane& lane = lanes_[number];
    int32_t mark = in_.activity_mark[row];
    if (mark >= 0) marks_[static_cast<size_t>(mark)].add(end, row, row, distance);
    lane.running.push_back({end, row, distance});
    std::push_heap(lane.running.begin(), lane.running.end());
    if (lane.is_dirty) return;
    lane.is_dirty = true;
    context_of(number).dirty.push_back(static_cast<int32_t>(number));
  }

  // From `time` on, launches on a lane wait for an event: for the work of a mark, or unknown work.
  void add_wait(size_t number, int64_t time, int32_t mark) {
    lanes_[number].waits.push_back({time, mark});
  }

  // The activities with a mark.
  Done<K> settle_mark(int32_t mark, int64_t time) const {
    if (mark < 0 || static_cast<size_t>(mark) >= marks_.size()) return {};
    Done<K> done = marks_[static_cast<size_t>(mark)];
    if (done.last < 0 || done.end <= time) return done;
    // Times of devices are interpolated, so work can seem to end after the start of work that
    // waited for it.
    for (int64_t& distance : done.distance) {
      distance = std::max<int64_t>(distance - (done.end - time), 0);
    }
    done.end = time;
    return done;
  }

  // The activities of a lane that have ended until `time`.
  const Done<K>& settle(size_t number, int64_t time) {
    Lane& lane = lanes_[number];
    while (!lane.running.empty() && lane.running.front().end <= time) {
      const Ended& first = lane.running.front();
      lane.done.add(first.end, first.row, first.row, first.distance);
      std::pop_heap(lane.running.begin(), lane.running.end());
      lane.running.pop_back();
    }
    return lane.done;
  }

  const Done<K>& settle_context_of(size_t number, int64_t time) {
    return settle_context(context_of(number), time);
  }

  // The activities that have ended in all contexts.
  Done<K> settle_all(int64_t time) {
    Done<K> done;
    for (Context& context : contexts_) done.add(settle_context(context, time));
    return done;
  }

  // The work that an activity at `time` waited for by events. `launched` is the start of its call.
  // Removes the events.
  Done<K> take_events(size_t number, int64_t launched, int64_t time) {
    Done<K> events;
    std::deque<Wait>& waits = lanes_[number].waits;
    while (!waits.empty() && waits.front().time <= launched) {
      Wait wait = waits.front();
      waits.pop_front();
      if (wait.mark != EPPROF_UNKNOWN_WORK) {
        events.add(settle_mark(wait.mark, time));
      } else if (const Done<K>* found = event_for(number, wait.time, time)) {
        events.add(*found);
      }
    }
    return events;
  }

 private:
  struct Ended {
    int64_t end;
    int32_t row;
    Distances<K> distance;
    bool operator<(const Ended& other) const { return end > other.end; }  // for a min-heap
  };
  struct Wait {
    int64_t time;
    int32_t mark;
  };
  struct Lane {
    std::vector<Ended> running;  // a heap of activities that have not ended yet
    std::deque<Wait> waits;
    Done<K> done;
    bool is_dirty = false;
  };
  struct Context {
    std::vector<int32_t> lanes, dirty;
    Done<K> done;
  };

  Context& context_of(size_t lane) { return contexts_[static_cast<size_t>(in_.lane_context[lane])]; }

  const Done<K>& settle_context(Context& context, int64_t time) {
    size_t kept = 0;
    for (int32_t number : context.dirty) {
      context.done.add(settle(static_cast<size_t>(number), time));
      Lane& lane = lanes_[static_cast<size_t>(number)];
      lane.is_dirty = !lane.running.empty();
      if (lane.is_dirty) context.dirty[kept++] = number;
    }
    context.dirty.resize(kept);
    return context.done;
  }

  // The lane whose work, launched before `launched`, ended last before `time`; null for none.
  const Done<K>* event_for(size_t number, int64_t launched, int64_t time) {
    const Done<K>* found = nullptr;
    for (int32_t other : context_of(number).lanes) {
      if (static_cast<size_t>(other) == number) continue;
      const Done<K>& done = settle(static_cast<size_t>(other), time);
      if (done.last < 0 || (found && done.end <= found->end)) continue;
      int32_t call = in_.activity_call[done.last];
      if (call >= 0 && in_.call_start[call] > launched) continue;
      found = &done;
    }
    return found;
  }

  const epprof_path_input& in_;
  std::vector<Lane> lanes_;
  std::vector<Context> contexts_;
  std::vector<Done<K>> marks_;
};

}  // namespace epprof
