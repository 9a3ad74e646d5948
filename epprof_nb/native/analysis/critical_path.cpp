// The longest path from the start of a profile to its end, in one pass over time.
//
// Each point in time of a thread or lane (calls and ops start and end, activities start and end)
// has a distance: the length of the longest path that leads to it. No step is longer than the time
// between its two points, so no distance exceeds the time since the start.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

#include "analysis/api.h"
#include "analysis/critical_path_lanes.h"
#include "analysis/critical_path_rows.h"

namespace epprof {
namespace {

constexpr size_t kMaxDepth = 1000;  // bound of nested ops that end at one time

// Rows by time. The time of the next row is kept, because other rows are compared with it.
struct Source {
  static constexpr int64_t kNoMore = std::numeric_limits<int64_t>::max();

  Source(const int64_t* all_times, const int32_t* row_order, size_t rows)
      : times(all_times), order(row_order), count(rows) {
    look();
  }
  size_t row() const { return order ? static_cast<size_t>(order[at]) : at; }
  size_t take() {
    size_t taken = row();
    at++;
    look();
    return taken;
  }
  void look() { time = at < count ? times[row()] : kNoMore; }

  const int64_t* times;
  const int32_t* order;
  size_t count, at = 0;
  int64_t time = kNoMore;
};

// Without factors, all work takes the time that it took, unless it is removed. Time that is left out
// has numbers of calls behind those of `in`. Every variant has the length that it has alone.
template <size_t K, bool HasFactors>
class Sweep {
 public:
  Sweep(const epprof_path_input& in, bool keep_path)
      : in_(in),
        keep_path_(keep_path),
        path_(in, keep_path),
        threads_(in.threads),
        lanes_(in),
        call_distance_(in.calls) {
    for (Thread& thread : threads_) thread.time.fill(in.start);
    for (size_t call = 0; call < in.calls; call++) {
      if (in.call_wait[call] == EPPROF_WAIT_OP) awaited_.try_emplace(in.call_lane[call]);
    }
  }

  void run() {
    // At equal times, ends come first. A call has started before it ends.
    enum { kOpEnd, kOp, kWait, kCall, kLeftOut, kActivity, kSources };
    Source sources[kSources] = {
        {in_.op_end, in_.op_end_order, in_.ops},
        {in_.op_start, in_.op_start_order, in_.ops},
        {in_.wait_time, nullptr, in_.waits},
        {in_.call_start, in_.call_start_order, in_.calls},
        {in_.left_out_start, in_.left_out_order, in_.left_out},
        {in_.activity_start, in_.activity_order, in_.activities},
    };
    for (;;) {
      int next = 0;
      for (int i = 1; i < kSources; i++) {
        if (sources[i].time < sources[next].time) next = i;
      }
      if (!ends_.empty() && ends_.front().time <= sources[next].time) {
        end_call();
        continue;
      }
      if (sources[next].at >= sources[next].count) break;
      size_t row = sources[next].take();
      switch (next) {
        case kOpEnd: end_op(row); break;
        case kOp: start_op(row); break;
        case kWait:
          lanes_.add_wait(static_cast<size_t>(in_.wait_lane[row]), in_.wait_time[row],
                          in_.wait_mark[row]);
          break;
        case kCall: start_call(row); break;
        case kLeftOut: start_left_out(row); break;
        default: start_activity(row);
      }
    }
    finish();
  }

  const Distances<K>& longest() const { return longest_; }

  void rows(Columns& out) const { path_.follow(last_point_, last_activity_, out); }

 private:
  using Variants = uint8_t;  // a bit per variant
  static constexpr Variants kAll = static_cast<Variants>((1u << K) - 1);
  // Variants that leave out other time have other points.
  static constexpr bool kHasOwnPoints = K > 1 && !HasFactors;

  // A call that has not ended, of some variants.
  struct Open {
    int32_t call;
    Variants variants;
  };
  struct Thread {
    std::array<int64_t, kHasOwnPoints ? K : 1> time;  // of the last point
    Distances<K> distance{};
    int32_t op = -1;
    int32_t point = -1;
    int32_t waiting = 0;  // open calls that wait for a device
    bool has_begun = false;  // it has had an op
    std::vector<Open> calls;
  };
  // The end of an open call.
  struct End {
    int64_t time;
    int32_t call;
    size_t thread;
    bool operator<(const End& other) const {  // for a min-heap
      return time != other.time ? time > other.time : call > other.call;
    }
  };
  // The thread of an op when the op began.
  struct OpStart {
    Distances<K> distance{};
    int32_t point = -1;
    bool is_known = false;
  };
  int64_t length_of(size_t a) const {
    if (in_.activity_length) return in_.activity_length[a];
    return std::max<int64_t>(in_.activity_end[a] - in_.activity_start[a], 0);
  }
  Variants without_call(size_t call) const {
    if (call >= in_.calls) return kAll;
    return in_.call_removed ? in_.call_removed[call] & kAll : 0;
  }
  static bool has(Variants variants, size_t k) { return variants >> k & 1; }
  static void take_longer_of(Variants variants, Distances<K>& distance, const Distances<K>& other) {
    for (size_t k = 0; k < K; k++) {
      if (has(variants, k)) distance[k] = std::max(distance[k], other[k]);
    }
  }
  bool is_home(size_t number) const { return static_cast<int32_t>(number) == in_.home; }
  const double* factors_of(int32_t op, int what) const {
    static constexpr std::array<double, K> kOnes = [] {
      std::array<double, K> ones{};
      for (double& one : ones) one = 1;
      return ones;
    }();
    if constexpr (!HasFactors) return kOnes.data();
    size_t change = in_.change[op < 0 ? in_.ops : static_cast<size_t>(op)];
    return in_.factors + (change * EPPROF_FACTORS + static_cast<size_t>(what)) * K;
  }
  void extend(Distances<K>& distance, int64_t length, int32_t op, int what,
              Variants variants = kAll) const {
    if constexpr (!HasFactors) {
      for (size_t k = 0; k < K; k++) distance[k] += has(variants, k) ? length : 0;
      return;
    }
    const double* factors = factors_of(op, what);
    for (size_t k = 0; k < K; k++) {
      if (!has(variants, k)) continue;
      double factor = factors[k];  // mostly 1, which needs no rounding
      distance[k] += factor == 1 ? length : std::llround(static_cast<double>(length) * factor);
    }
  }

  // The state of a thread since its last point.
  struct Doing {
    Step step;
    int32_t row, op;
    Variants takes_time, in_call;
  };
  Doing doing(size_t number) const {
    const Thread& thread = threads_[number];
    Doing now = {Step::kHost, thread.op, thread.op, 0, 0};
    if (!thread.calls.empty()) {
      int32_t call = thread.calls.back().call;
      now.step = Step::kCall;
      now.row = call;
      if (static_cast<size_t>(call) < in_.calls && in_.call_op[call] >= 0) {
        now.op = in_.call_op[call];
      }
    }
    for (size_t i = thread.calls.size(); i-- > 0 && now.in_call != kAll;) {
      Variants variants = thread.calls[i].variants & ~now.in_call;
      now.in_call |= variants;
      if (thread.waiting) continue;
      now.takes_time |= variants & ~without_call(static_cast<size_t>(thread.calls[i].call));
    }
    for (size_t k = 0; k < (kHasOwnPoints ? K : 1); k++) {
      if (has(now.in_call, k)) continue;
      if (is_active(number) || (thread.has_begun && thread.time[k] < in_.thread_own_until[number])) {
        now.takes_time |= kHasOwnPoints ? static_cast<Variants>(1u << k) : kAll;
      }
    }
    return now;
  }
  // Whether a thread without calls works for itself.
  bool is_active(size_t number) const { return threads_[number].op >= 0 || is_home(number); }

  // Move a thread on to `time`.
  void advance(size_t number, int64_t time, Variants variants = kAll) {
    Thread& thread = threads_[number];
    Doing now = doing(number);
    int64_t until = is_active(number) ? time : std::min(time, in_.thread_own_until[number]);
    if constexpr (kHasOwnPoints) {
      for (size_t k = 0; k < K; k++) {
        if (!has(variants, k)) continue;
        if (has(now.takes_time, k)) {
          thread.distance[k] += (has(now.in_call, k) ? time : until) - thread.time[k];
        }
        thread.time[k] = time;
      }
    } else {
      int64_t length = now.takes_time ? (now.in_call ? time : until) - thread.time[0] : 0;
      extend(thread.distance, length, now.op, EPPROF_HOST);
      if (length > 0) {
        thread.point = path_.add_point(time, length, thread.point, -1, now.step, now.row);
      }
      thread.time[0] = time;
    }
    Variants idle = variants & ~(now.in_call | now.takes_time);
    if (!idle || (thread.has_begun && !in_.follow_home)) return;
    // A thread without ops acts on behalf of another thread.
    int32_t point = -1;
    Distances<K> distance = home_at(time, &point);
    if (distance[0] > thread.distance[0]) thread.point = point;
    take_longer_of(idle, thread.distance, distance);
  }

  Distances<K> home_at(int64_t time, int32_t* point) {
    const Thread& home = threads_[static_cast<size_t>(in_.home)];
    Doing now = doing(static_cast<size_t>(in_.home));
    Distances<K> distance = home.distance;
    if constexpr (kHasOwnPoints) {
      for (size_t k = 0; k < K; k++) {
        distance[k] += has(now.takes_time, k) ? time - home.time[k] : 0;
      }
    } else {
      int64_t length = now.takes_time ? time - home.time[0] : 0;
      extend(distance, length, now.op, EPPROF_HOST);
      *point = length > 0 ? path_.add_point(time, length, home.point, -1, now.step, now.row) : home.point;
    }
    return distance;
  }

  // Whether it changes no length in which op, or which call that takes time, a thread is.
  bool is_alike(size_t number) const { return !HasFactors && !keep_path_ && is_home(number); }
  void skip_to(int64_t time) { home_until_ = std::max(home_until_, time); }

  void start_op(size_t op) {
    int32_t number = in_.op_thread[op];
    if (number < 0) return;
    if (is_alike(static_cast<size_t>(number)) && awaited_.empty()) {
      skip_to(in_.op_start[op]);
      return;
    }
    advance(static_cast<size_t>(number), in_.op_start[op]);
    threads_[static_cast<size_t>(number)].op = static_cast<int32_t>(op);
    threads_[static_cast<size_t>(number)].has_begun = true;
    if (auto found = awaited_.find(static_cast<int32_t>(op)); found != awaited_.end()) {
      const Thread& thread = threads_[static_cast<size_t>(number)];
      found->second = {thread.distance, thread.point, true};
    }
  }

  void end_op(size_t op) {
    int32_t number = in_.op_thread[op];
    if (number < 0) return;
    if (is_alike(static_cast<size_t>(number)) && !in_.op_added) {
      skip_to(in_.op_end[op]);
      return;
    }
    Thread& thread = threads_[static_cast<size_t>(number)];
    bool is_innermost = thread.op == static_cast<int32_t>(op);
    int64_t added = in_.op_added ? in_.op_added[op] : 0;
    if (!is_innermost && !added) return;
    int64_t time = in_.op_end[op];
    advance(static_cast<size_t>(number), time);
    for (size_t k = 0; k < K; k++) thread.distance[k] += added;
    if (!is_innermost) return;
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
    size_t number = static_cast<size_t>(in_.call_thread[call]);
    Thread& thread = threads_[number];
    advance(number, in_.call_start[call]);
    call_distance_[call] = thread.distance;
    path_.set_call(call, thread.point);
    bool waits = in_.call_wait[call] != EPPROF_NO_WAIT;
    if (is_alike(number) && !waits && thread.calls.empty() && !without_call(call)) {
      skip_to(in_.call_end[call]);
      return;
    }
    thread.waiting += waits;
    open_call(number, {static_cast<int32_t>(call), kAll}, in_.call_start[call], in_.call_end[call]);
  }

  void start_left_out(size_t row) {
    size_t number = static_cast<size_t>(in_.left_out_thread[row]);
    Variants variants = in_.left_out_variants[row] & kAll;
    advance(number, in_.left_out_start[row], variants);
    open_call(number, {static_cast<int32_t>(in_.calls + row), variants}, in_.left_out_start[row],
              in_.left_out_end[row]);
  }

  void open_call(size_t number, Open call, int64_t start, int64_t end) {
    threads_[number].calls.push_back(call);
    ends_.push_back({end, call.call, number});
    std::push_heap(ends_.begin(), ends_.end());
    if (end <= start) end_call();
  }

  void end_call() {
    const auto [time, call, number] = ends_.front();
    std::pop_heap(ends_.begin(), ends_.end());
    ends_.pop_back();
    std::vector<Open>& calls = threads_[number].calls;
    size_t at = calls.size() - 1;
    while (calls[at].call != call) at--;
    advance(number, time, calls[at].variants);
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(at));
    if (static_cast<size_t>(call) < in_.calls) end_wait(static_cast<size_t>(call));
  }

  void end_wait(size_t call) {
    Thread& thread = threads_[static_cast<size_t>(in_.call_thread[call])];
    int64_t start = in_.call_start[call], end = std::max(in_.call_end[call], start);
    uint8_t wait = in_.call_wait[call];
    if (wait == EPPROF_NO_WAIT) return;
    thread.waiting--;
    Variants variants = kAll & ~without_call(call);
    if (!variants) return;
    if (wait == EPPROF_WAIT_THREAD) {
      join(thread, static_cast<size_t>(in_.call_lane[call]), end, variants);
      return;
    }
    if (wait == EPPROF_WAIT_TIME) {
      wait_until(thread, call, end, variants);
      return;
    }
    if (wait == EPPROF_WAIT_OP) {
      wait_for_op(thread, in_.call_lane[call], end, variants);
      return;
    }
    Done<K> done;
    if (wait == EPPROF_WAIT_LANE) {
      done = lanes_.settle(static_cast<size_t>(in_.call_lane[call]), end);
    } else if (wait == EPPROF_WAIT_CONTEXT) {
      done = lanes_.settle_context_of(static_cast<size_t>(in_.call_lane[call]), end);
    } else if (wait == EPPROF_WAIT_MARK) {
      done = lanes_.settle_mark(in_.call_lane[call], end);
    } else {
      done = lanes_.settle_all(end);
    }
    // Time from the end of the work that the call waited for, or from its own start, to its return.
    int64_t length = end - std::max(done.end, start);
    int32_t op = in_.call_op[call];
    if (op < 0) op = thread.op;
    int32_t activity = -1;
    // Calls inside this one are counted separately, in the distance of the thread.
    Distances<K> distance = call_distance_[call];
    if (done.last >= 0) {
      const double* exists = factors_of(op, EPPROF_DELAY);
      if (exists[0] != 0 && done.distance[0] > distance[0]) activity = done.longest;
      for (size_t k = 0; k < K; k++) {
        if (exists[k] != 0) distance[k] = std::max(distance[k], done.distance[k]);
      }
    }
    extend(distance, length, op, EPPROF_HOST);
    if (distance[0] > thread.distance[0]) {
      thread.point = path_.add_point(end, length, path_.point_of_call(call), activity,
                                      done.end > start ? Step::kReturn : Step::kCall,
                                      static_cast<int32_t>(call));
    }
    take_longer_of(variants, thread.distance, distance);
  }

  // A thread waited for another one, which worked until `end`. Code that does not exist waits for
  // nothing.
  void join(Thread& thread, size_t other, int64_t end, Variants variants) {
    advance(other, end, variants);
    const Thread& worker = threads_[other];
    const double* exists = factors_of(thread.op, EPPROF_DELAY);
    if (exists[0] != 0 && worker.distance[0] > thread.distance[0]) thread.point = worker.point;
    for (size_t k = 0; k < K; k++) {
      if (exists[k] == 0 || !has(variants, k)) continue;
      thread.distance[k] = std::max(thread.distance[k], worker.distance[k]);
    }
  }

  // A thread did nothing until `end`: it does not come earlier, unless its op takes less time. What
  // the op takes more comes afterwards.
  void wait_until(Thread& thread, size_t call, int64_t end, Variants variants) {
    int64_t length = end - std::max(in_.call_start[call], in_.start);
    const double* factors = factors_of(thread.op, EPPROF_HOST);
    Distances<K> distance = call_distance_[call];
    extend(distance, length, thread.op, EPPROF_HOST);
    for (size_t k = 0; k < K; k++) {
      if (factors[k] < 1) continue;
      int64_t more = std::llround(static_cast<double>(length) * (factors[k] - 1));
      distance[k] = std::max(call_distance_[call][k], end - in_.start) + more;
    }
    if (length > 0 && distance[0] > thread.distance[0]) {
      thread.point = path_.add_point(end, length, path_.point_of_call(call), -1, Step::kHost,
                                      thread.op);
    }
    take_longer_of(variants, thread.distance, distance);
  }

  // A thread did nothing until an op went on that was suspended, as by a timer.
  void wait_for_op(Thread& thread, int32_t op, int64_t end, Variants variants) {
    const OpStart& start = awaited_[op];
    int64_t length = end - in_.op_start[op];
    if (!start.is_known || length < 0) return;
    Distances<K> distance = start.distance;
    extend(distance, length, op, EPPROF_HOST);
    if (distance[0] > thread.distance[0]) {
      thread.point = path_.add_point(end, length, start.point, -1, Step::kHost, op);
    }
    take_longer_of(variants, thread.distance, distance);
  }

  void start_activity(size_t a) {
    if (in_.activity_lane[a] < 0) return;
    int64_t start = in_.activity_start[a];
    size_t number = static_cast<size_t>(in_.activity_lane[a]);
    int32_t call = in_.activity_call[a], op = in_.activity_op[a];
    const Done<K>& before = lanes_.settle(number, start);
    int64_t called = call >= 0 ? in_.call_start[call] : start;
    const Done<K> event = lanes_.take_events(number, called, start);
    // The activity started when its launch had arrived, the lane was free and its event had
    // occurred. The last of these conditions took effect without delay.
    int64_t arrived = call >= 0 ? std::min(called + in_.latency, start) : kNever;
    From cause = call >= 0 ? From::kCall : From::kHost;
    int64_t last = arrived;
    if (before.last >= 0 && before.end > last &&
        (call >= 0 || start - before.end <= in_.latency)) {
      cause = From::kLane;
      last = before.end;
    }
    if (event.last >= 0 && event.end > last) {
      cause = From::kEvent;
      last = event.end;
    }
    // Its start without the omitted delay.
    int64_t begun = start;
    if (in_.activity_freed) begun = std::max(last, start - in_.activity_freed[a]);

    Distances<K> distance{};
    From from = From::kStart;
    int32_t from_row = -1;
    int64_t gap = 0;
    Variants exists = in_.activity_removed ? kAll & ~in_.activity_removed[a] : kAll;
    auto depend = [&](const Distances<K>& on, int64_t length, From by, int32_t by_row) {
      Distances<K> other = on;
      extend(other, length, op, EPPROF_DELAY, exists);
      if (from == From::kStart || other[0] > distance[0]) {
        from = by;
        from_row = by_row;
        gap = length;
      }
      take_longer(distance, other);
    };
    if (event.last >= 0) {
      depend(event.distance, cause == From::kEvent ? begun - event.end : 0, From::kEvent,
             event.longest);
    }
    if (before.last >= 0) {
      depend(before.distance, cause == From::kLane ? begun - before.end : 0, From::kLane,
             before.longest);
    }
    if (call >= 0) {
      int64_t delay = (cause == From::kCall ? begun : arrived) - called;
      depend(call_distance_[static_cast<size_t>(call)], delay, From::kCall, -1);
    } else if (cause == From::kHost) {
      // The launching thread is unknown. The home thread's work until now is the best bound.
      int32_t point = -1;
      Distances<K> home = home_at(start, &point);
      if (from == From::kStart || home[0] > distance[0]) {
        from = point < 0 ? From::kStart : From::kHost;
        from_row = point;
      }
      take_longer(distance, home);
    }
    path_.set_activity(a, from, from_row, gap);
    extend(distance, length_of(a), op, EPPROF_DEVICE, exists);
    lanes_.start(number, std::max(in_.activity_end[a], start), static_cast<int32_t>(a), distance);
  }

  void finish() {
    size_t home = static_cast<size_t>(in_.home);
    const auto times = threads_[home].time;
    for (size_t k = 0; k < times.size(); k++) {
      advance(home, std::max({in_.end, times[k], home_until_}),
              kHasOwnPoints ? static_cast<Variants>(1u << k) : kAll);
    }
    longest_ = threads_[home].distance;
    last_point_ = threads_[home].point;
    for (const Thread& thread : threads_) {
      if (in_.ends_with_home) break;
      if (thread.distance[0] > longest_[0]) last_point_ = thread.point;
      take_longer(longest_, thread.distance);
    }
    Done<K> done = lanes_.settle_all(std::numeric_limits<int64_t>::max());
    if (done.last < 0) return;
    if (done.distance[0] > longest_[0]) {
      last_point_ = -1;
      last_activity_ = done.longest;
    }
    take_longer(longest_, done.distance);
  }

  const epprof_path_input& in_;
  bool keep_path_;
  PathRows path_;
  std::vector<Thread> threads_;
  Lanes<K> lanes_;
  std::vector<Distances<K>> call_distance_;
  std::vector<End> ends_;  // a heap
  std::unordered_map<int32_t, OpStart> awaited_;
  Distances<K> longest_{};
  int64_t home_until_ = kNever;  // end of what `home` did that was skipped
  int32_t last_point_ = -1, last_activity_ = -1;
};

template <size_t K, bool HasFactors>
void compute(const epprof_path_input& input, bool rows, Columns& out) {
  Sweep<K, HasFactors> sweep(input, rows);
  sweep.run();
  const Distances<K>& longest = sweep.longest();
  out.add("length_ns", std::vector<int64_t>(longest.begin(), longest.end()));
  if (rows) sweep.rows(out);
}

}  // namespace
}  // namespace epprof

epprof_columns* epprof_critical_path(const epprof_path_input* input, int variants, int rows) {
  try {
    auto out = std::make_unique<epprof::Columns>();
    if (!rows && variants != 1 && input->factors) {
      epprof::compute<8, true>(*input, false, *out);
    } else if (!rows && variants == 4) {
      epprof::compute<4, false>(*input, false, *out);
    } else if (input->factors) {
      epprof::compute<1, true>(*input, rows != 0, *out);
    } else {
      epprof::compute<1, false>(*input, rows != 0, *out);
    }
    return out.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
