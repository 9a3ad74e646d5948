// The longest path from the start of a profile to its end, in one pass over time.
//
// Each point in time of a thread or lane (calls and ops start and end, activities start and end)
// has a distance: the length of the longest path that leads to it. No step is longer than the time
// between its two points, so no distance exceeds the time since the start.
#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "analysis/api.h"

namespace epprof {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

// What a row of the path is; the numbers are known to epprof_nb/analysis/critical_path.py.
enum class Step : uint8_t { kHost, kCall, kActivity, kLaunch, kGap, kEvent, kReturn };

enum class From : uint8_t { kStart, kCall, kLane, kEvent, kHost };

constexpr size_t kMaxDepth = 1000;  // of the ops that end at one time

template <size_t K>
using Distances = std::array<int64_t, K>;

template <size_t K>
class Sweep {
 public:
  Sweep(const ep_path_input& in, bool keep_path)
      : in_(in), keep_path_(keep_path), threads_(in.threads), lanes_(in.lanes) {
    int32_t contexts = 0;
    for (size_t i = 0; i < in.lanes; i++) contexts = std::max(contexts, in.lane_context[i] + 1);
    contexts_.resize(static_cast<size_t>(contexts));
    for (size_t i = 0; i < in.lanes; i++) context_of(i).lanes.push_back(static_cast<int32_t>(i));
    for (Thread& thread : threads_) thread.time = in.start;
    call_distance_.resize(in.calls);
    if (!keep_path_) return;
    call_point_.assign(in.calls, -1);
    from_.resize(in.activities);
    from_row_.assign(in.activities, -1);
    gap_.resize(in.activities);
    points_.reserve(2 * (in.calls + in.ops) + in.activities / 8 + 16);
  }

  void run() {
    size_t op = 0, op_end = 0, call = 0, call_end = 0, activity = 0, wait = 0;
    for (;;) {
      int64_t t = std::numeric_limits<int64_t>::max();
      int which = -1;
      auto consider = [&](size_t at, size_t count, const int64_t* times, const int32_t* order,
                          int source) {
        if (at >= count) return;
        int64_t time = times[row(order, at)];
        if (which < 0 || time < t) {
          t = time;
          which = source;
        }
      };
      // At equal times, what ends comes first. A call has started before it ends.
      consider(call_end, in_.calls, in_.call_end, in_.call_end_order, 0);
      consider(op_end, in_.ops, in_.op_end, in_.op_end_order, 1);
      consider(op, in_.ops, in_.op_start, in_.op_start_order, 2);
      consider(wait, in_.waits, in_.wait_time, nullptr, 3);
      consider(call, in_.calls, in_.call_start, in_.call_start_order, 4);
      consider(activity, in_.activities, in_.activity_start, in_.activity_order, 5);
      switch (which) {
        case 0: end_call(row(in_.call_end_order, call_end++)); break;
        case 1: end_op(row(in_.op_end_order, op_end++)); break;
        case 2: start_op(row(in_.op_start_order, op++)); break;
        case 3:
          lanes_[static_cast<size_t>(in_.wait_lane[wait])].waits.push_back(in_.wait_time[wait]);
          wait++;
          break;
        case 4: start_call(row(in_.call_start_order, call++)); break;
        case 5: start_activity(row(in_.activity_order, activity++)); break;
        default: finish(); return;
      }
    }
  }

  Distances<K> longest() const { return longest_; }

  // The rows of the path, from its end to its start.
  void trace(Columns& out) {
    std::vector<uint8_t> step;
    std::vector<int32_t> rows;
    std::vector<int64_t> starts, ends;
    auto add = [&](Step kind, int32_t of, int64_t end, int64_t length) {
      if (length <= 0) return;
      if (!step.empty() && kind == Step::kHost && step.back() == static_cast<uint8_t>(kind) &&
          rows.back() == of && starts.back() == end) {
        starts.back() = end - length;
        return;
      }
      step.push_back(static_cast<uint8_t>(kind));
      rows.push_back(of);
      starts.push_back(end - length);
      ends.push_back(end);
    };
    int32_t point = last_point_, activity = last_activity_;
    while (point >= 0 || activity >= 0) {
      if (activity >= 0) {
        size_t a = static_cast<size_t>(activity);
        add(Step::kActivity, activity, in_.activity_end[a], length_of(a));
        int64_t start = in_.activity_start[a];
        int32_t row = activity;
        activity = point = -1;
        switch (from_[a]) {
          case From::kStart: break;
          case From::kCall:
            add(Step::kLaunch, row, start, gap_[a]);
            point = call_point_[static_cast<size_t>(in_.activity_call[a])];
            break;
          case From::kLane:
            add(Step::kGap, row, start, gap_[a]);
            activity = from_row_[a];
            break;
          case From::kEvent:
            add(Step::kEvent, row, start, gap_[a]);
            activity = from_row_[a];
            break;
          case From::kHost: point = from_row_[a]; break;
        }
        continue;
      }
      const Point& p = points_[static_cast<size_t>(point)];
      add(p.step, p.row, p.time, p.length);
      activity = p.activity;
      point = activity >= 0 ? -1 : p.before;
    }
    out.add("step", std::move(step));
    out.add("row", std::move(rows));
    out.add("start_ns", std::move(starts));
    out.add("end_ns", std::move(ends));
  }

 private:
  struct Thread {
    int64_t time;  // of the last point
    Distances<K> distance{};
    int32_t op = -1;
    int32_t point = -1;
    int32_t waiting = 0;  // open calls that wait for a device
    std::vector<int32_t> calls;
  };
  struct Ended {
    int64_t end;
    int32_t row;
    Distances<K> distance;
    bool operator<(const Ended& other) const { return end > other.end; }  // for a min-heap
  };
  // What has ended on a lane, or in a context.
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
      for (size_t k = 0; k < K; k++) distance[k] = std::max(distance[k], from[k]);
    }
  };
  struct Lane {
    std::vector<Ended> running;  // a heap: what has started and not ended yet
    std::deque<int64_t> waits;
    Done done;
    bool is_dirty = false;
  };
  struct Context {
    std::vector<int32_t> lanes, dirty;
    Done done;
  };
  struct Point {
    int64_t time, length;
    int32_t before;    // the point before it
    int32_t activity;  // instead, the activity before it
    int32_t row;
    Step step;
  };

  static size_t row(const int32_t* order, size_t at) {
    return order ? static_cast<size_t>(order[at]) : at;
  }
  Context& context_of(size_t lane) { return contexts_[static_cast<size_t>(in_.lane_context[lane])]; }
  uint8_t free_in(int32_t op) const {
    return in_.free_ops[op < 0 ? in_.ops : static_cast<size_t>(op)];
  }
  int64_t length_of(size_t a) const {
    return std::max<int64_t>(in_.activity_end[a] - in_.activity_start[a], 0);
  }
  void extend(Distances<K>& distance, int64_t length, int32_t op) const {
    uint8_t free = free_in(op);
    for (size_t k = 0; k < K; k++) distance[k] += free >> k & 1 ? 0 : length;
  }

  int32_t add_point(int64_t time, int64_t length, int32_t before, int32_t activity, Step step,
                    int32_t row) {
    if (!keep_path_) return -1;
    points_.push_back({time, length, before, activity, row, step});
    return static_cast<int32_t>(points_.size() - 1);
  }

  // What a thread does from its last point on.
  struct Doing {
    Step step;
    int32_t row, op;
    bool takes_time;
  };
  Doing doing(size_t number) const {
    const Thread& thread = threads_[number];
    if (!thread.calls.empty()) {
      int32_t call = thread.calls.back();
      int32_t op = in_.call_op[call];
      return {Step::kCall, call, op < 0 ? thread.op : op, thread.waiting == 0};
    }
    bool is_active = thread.op >= 0 || static_cast<int32_t>(number) == in_.home;
    return {Step::kHost, thread.op, thread.op, is_active};
  }

  // Move a thread on to `time`.
  void advance(size_t number, int64_t time) {
    Thread& thread = threads_[number];
    Doing now = doing(number);
    bool is_idle = thread.calls.empty() && !now.takes_time;
    int64_t length = now.takes_time ? time - thread.time : 0;
    extend(thread.distance, length, now.op);
    if (length > 0) {
      thread.point = add_point(time, length, thread.point, -1, now.step, now.row);
    }
    thread.time = time;
    if (!is_idle) return;
    // A thread without ops does something because another thread told it to.
    int32_t point = -1;
    Distances<K> distance = home_at(time, &point);
    if (distance[0] > thread.distance[0]) thread.point = point;
    for (size_t k = 0; k < K; k++) {
      thread.distance[k] = std::max(thread.distance[k], distance[k]);
    }
  }

  Distances<K> home_at(int64_t time, int32_t* point) {
    const Thread& home = threads_[static_cast<size_t>(in_.home)];
    Doing now = doing(static_cast<size_t>(in_.home));
    int64_t length = now.takes_time ? time - home.time : 0;
    Distances<K> distance = home.distance;
    extend(distance, length, now.op);
    *point = length > 0 ? add_point(time, length, home.point, -1, now.step, now.row) : home.point;
    return distance;
  }

  void start_op(size_t op) {
    int32_t number = in_.op_thread[op];
    if (number < 0) return;
    advance(static_cast<size_t>(number), in_.op_start[op]);
    threads_[static_cast<size_t>(number)].op = static_cast<int32_t>(op);
  }

  void end_op(size_t op) {
    int32_t number = in_.op_thread[op];
    if (number < 0) return;
    Thread& thread = threads_[static_cast<size_t>(number)];
    if (thread.op != static_cast<int32_t>(op)) return;
    int64_t time = in_.op_end[op];
    advance(static_cast<size_t>(number), time);
    int32_t parent = in_.op_parent[op];
    // Ops of a damaged file may be their own ancestors.
    for (size_t steps = 0; parent >= 0 && steps < kMaxDepth; steps++) {
      size_t p = static_cast<size_t>(parent);
      if (in_.op_thread[p] == number && in_.op_start[p] <= time && in_.op_end[p] > time) {
        thread.op = parent;
        return;
      }
      parent = in_.op_parent[p];
    }
    thread.op = -1;
  }

  void start_call(size_t call) {
    int32_t number = in_.call_thread[call];
    Thread& thread = threads_[static_cast<size_t>(number)];
    advance(static_cast<size_t>(number), in_.call_start[call]);
    call_distance_[call] = thread.distance;
    if (keep_path_) call_point_[call] = thread.point;
    thread.calls.push_back(static_cast<int32_t>(call));
    thread.waiting += in_.call_wait[call] != EP_NO_WAIT;
    if (in_.call_end[call] <= in_.call_start[call]) close_call(call);
  }

  void end_call(size_t call) {
    if (in_.call_end[call] > in_.call_start[call]) close_call(call);
  }

  void close_call(size_t call) {
    size_t number = static_cast<size_t>(in_.call_thread[call]);
    Thread& thread = threads_[number];
    auto open = std::find(thread.calls.rbegin(), thread.calls.rend(), static_cast<int32_t>(call));
    if (open == thread.calls.rend()) return;
    int64_t start = in_.call_start[call], end = std::max(in_.call_end[call], start);
    advance(number, end);
    thread.calls.erase(std::next(open).base());
    uint8_t wait = in_.call_wait[call];
    if (wait == EP_NO_WAIT) return;
    thread.waiting--;
    Done done;
    if (wait == EP_WAIT_LANE) {
      done = settle(static_cast<size_t>(in_.call_lane[call]), end);
    } else if (wait == EP_WAIT_CONTEXT) {
      done = settle_context(context_of(static_cast<size_t>(in_.call_lane[call])), end);
    } else {
      for (Context& context : contexts_) {
        const Done& other = settle_context(context, end);
        if (other.last >= 0) done.add(other.end, other.last, other.longest, other.distance);
      }
    }
    // Whatever the call waited for, it returned this long after that, or after its own start.
    int64_t length = end - std::max(done.end, start);
    int32_t op = in_.call_op[call];
    if (op < 0) op = thread.op;
    int32_t point = keep_path_ ? call_point_[call] : -1, activity = -1;
    // Calls inside this one count on their own: their time is in the distance of the thread.
    Distances<K> distance = call_distance_[call];
    if (done.last >= 0) {
      if (done.distance[0] > distance[0]) activity = done.longest;
      for (size_t k = 0; k < K; k++) distance[k] = std::max(distance[k], done.distance[k]);
    }
    extend(distance, length, op);
    if (distance[0] > thread.distance[0]) {
      thread.point = add_point(end, length, point, activity,
                               done.end > start ? Step::kReturn : Step::kCall,
                               static_cast<int32_t>(call));
    }
    for (size_t k = 0; k < K; k++) {
      thread.distance[k] = std::max(thread.distance[k], distance[k]);
    }
  }

  // Take over what has ended on a lane until `time`.
  Done& settle(size_t number, int64_t time) {
    Lane& lane = lanes_[number];
    while (!lane.running.empty() && lane.running.front().end <= time) {
      const Ended& first = lane.running.front();
      lane.done.add(first.end, first.row, first.row, first.distance);
      std::pop_heap(lane.running.begin(), lane.running.end());
      lane.running.pop_back();
    }
    return lane.done;
  }

  Done& settle_context(Context& context, int64_t time) {
    size_t kept = 0;
    for (int32_t number : context.dirty) {
      Lane& lane = lanes_[static_cast<size_t>(number)];
      const Done& done = settle(static_cast<size_t>(number), time);
      if (done.last >= 0) context.done.add(done.end, done.last, done.longest, done.distance);
      lane.is_dirty = !lane.running.empty();
      if (lane.is_dirty) context.dirty[kept++] = number;
    }
    context.dirty.resize(kept);
    return context.done;
  }

  // The lane whose work, launched before `launched`, ended last before `time`; null for none.
  const Done* event_for(size_t number, int64_t launched, int64_t time) {
    const Done* found = nullptr;
    for (int32_t other : context_of(number).lanes) {
      if (static_cast<size_t>(other) == number) continue;
      const Done& done = settle(static_cast<size_t>(other), time);
      if (done.last < 0 || (found && done.end <= found->end)) continue;
      int32_t call = in_.activity_call[done.last];
      if (call >= 0 && in_.call_start[call] > launched) continue;
      found = &done;
    }
    return found;
  }

  void start_activity(size_t a) {
    if (in_.activity_lane[a] < 0) return;
    int64_t start = in_.activity_start[a];
    size_t number = static_cast<size_t>(in_.activity_lane[a]);
    int32_t call = in_.activity_call[a], op = in_.activity_op[a];
    Lane& lane = lanes_[number];
    const Done& before = settle(number, start);
    int64_t called = call >= 0 ? in_.call_start[call] : start;
    const Done* event = nullptr;
    while (!lane.waits.empty() && lane.waits.front() <= called) {
      if (const Done* found = event_for(number, lane.waits.front(), start)) event = found;
      lane.waits.pop_front();
    }
    // The activity started when its launch had arrived, the lane was free and its event had
    // occurred: the last of these took effect without delay, and the others earlier.
    int64_t arrived = call >= 0 ? std::min(called + in_.latency, start) : kNever;
    From cause = call >= 0 ? From::kCall : From::kHost;
    int64_t last = arrived;
    if (before.last >= 0 && before.end > last &&
        (call >= 0 || start - before.end <= in_.latency)) {
      cause = From::kLane;
      last = before.end;
    }
    if (event && event->end > last) cause = From::kEvent;

    Distances<K> distance{};
    From from = From::kStart;
    int32_t from_row = -1;
    int64_t gap = 0;
    auto depend = [&](const Distances<K>& on, int64_t length, From by, int32_t by_row) {
      Distances<K> other = on;
      extend(other, length, op);
      if (from == From::kStart || other[0] > distance[0]) {
        from = by;
        from_row = by_row;
        gap = length;
      }
      for (size_t k = 0; k < K; k++) distance[k] = std::max(distance[k], other[k]);
    };
    if (event) {
      depend(event->distance, cause == From::kEvent ? start - event->end : 0, From::kEvent,
             event->longest);
    }
    if (before.last >= 0) {
      depend(before.distance, cause == From::kLane ? start - before.end : 0, From::kLane,
             before.longest);
    }
    if (call >= 0) {
      int64_t delay = (cause == From::kCall ? start : arrived) - called;
      depend(call_distance_[static_cast<size_t>(call)], delay, From::kCall, -1);
    } else if (cause == From::kHost) {
      // Nobody knows who launched it. Whatever the home thread did until now is the best bound.
      int32_t point = -1;
      Distances<K> home = home_at(start, &point);
      if (from == From::kStart || home[0] > distance[0]) {
        from = point < 0 ? From::kStart : From::kHost;
        from_row = point;
      }
      for (size_t k = 0; k < K; k++) distance[k] = std::max(distance[k], home[k]);
    }
    if (keep_path_) {
      from_[a] = from;
      from_row_[a] = from_row;
      gap_[a] = gap;
    }
    extend(distance, length_of(a), op);
    lane.running.push_back(
        {std::max(in_.activity_end[a], start), static_cast<int32_t>(a), distance});
    std::push_heap(lane.running.begin(), lane.running.end());
    if (!lane.is_dirty) {
      lane.is_dirty = true;
      context_of(number).dirty.push_back(static_cast<int32_t>(number));
    }
  }

  void finish() {
    size_t home = static_cast<size_t>(in_.home);
    advance(home, std::max(in_.end, threads_[home].time));
    longest_ = threads_[home].distance;
    last_point_ = threads_[home].point;
    for (const Thread& thread : threads_) {
      if (thread.distance[0] > longest_[0]) last_point_ = thread.point;
      for (size_t k = 0; k < K; k++) longest_[k] = std::max(longest_[k], thread.distance[k]);
    }
    for (Context& context : contexts_) {
      const Done& done = settle_context(context, std::numeric_limits<int64_t>::max());
      if (done.last < 0) continue;
      if (done.distance[0] > longest_[0]) {
        last_point_ = -1;
        last_activity_ = done.longest;
      }
      for (size_t k = 0; k < K; k++) longest_[k] = std::max(longest_[k], done.distance[k]);
    }
  }

  const ep_path_input& in_;
  bool keep_path_;
  std::vector<Thread> threads_;
  std::vector<Lane> lanes_;
  std::vector<Context> contexts_;
  std::vector<Distances<K>> call_distance_;
  std::vector<int32_t> call_point_, from_row_;
  std::vector<int64_t> gap_;
  std::vector<From> from_;
  std::vector<Point> points_;
  Distances<K> longest_{};
  int32_t last_point_ = -1, last_activity_ = -1;
};

template <size_t K>
void compute(const ep_path_input& input, bool rows, Columns& out) {
  Sweep<K> sweep(input, rows);
  sweep.run();
  Distances<K> longest = sweep.longest();
  out.add("length_ns", std::vector<int64_t>(longest.begin(), longest.end()));
  if (rows) sweep.trace(out);
}

}  // namespace
}  // namespace epprof

ep_columns* ep_critical_path(const ep_path_input* input, int rows) {
  try {
    auto out = std::make_unique<epprof::Columns>();
    if (rows) {
      epprof::compute<1>(*input, true, *out);
    } else {
      epprof::compute<8>(*input, false, *out);
    }
    return out.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
