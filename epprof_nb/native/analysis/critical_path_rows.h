// The rows of the path: the origin of each distance, followed back from the end of the path.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/api.h"
#include "core/columns.h"

namespace epprof {

// Kinds of rows of the path, with the numbers of epprof_nb/analysis/critical_path/chain.py.
enum class Step : uint8_t { kHost, kCall, kActivity, kLaunch, kGap, kEvent, kReturn };

// The condition that the start of an activity depended on.
enum class From : uint8_t { kStart, kCall, kLane, kEvent, kHost };

class PathRows {
 public:
  PathRows(const epprof_path_input& in, bool is_kept);

  // Add a point of a thread, `length` after the point or the activity before it. Return its number,
  // or -1 if points are not kept.
  int32_t add_point(int64_t time, int64_t length, int32_t before, int32_t activity, Step step,
                    int32_t row) {
    if (!is_kept_) return -1;
    points_.push_back({time, length, before, activity, row, step});
    return static_cast<int32_t>(points_.size() - 1);
  }

  void set_call(size_t call, int32_t point) {
    if (is_kept_) call_point_[call] = point;
  }
  int32_t point_of_call(size_t call) const { return is_kept_ ? call_point_[call] : -1; }

  // `row` is an activity, or a point for `kHost`; `gap` is the time between them.
  void set_activity(size_t activity, From from, int32_t row, int64_t gap) {
    if (is_kept_) causes_[activity] = {gap, row, from};
  }

  // Add the rows of the path that ends with a point or an activity, from its end to its start.
  void follow(int32_t point, int32_t activity, Columns& out) const;

 private:
  struct Point {
    int64_t time, length;
    int32_t before;    // the point before it
    int32_t activity;  // or the activity before it
    int32_t row;
    Step step;
  };
  struct Cause {
    int64_t gap = 0;
    int32_t row = -1;
    From from = From::kStart;
  };

  const epprof_path_input& in_;
  bool is_kept_;
  std::vector<int32_t> call_point_;
  std::vector<Cause> causes_;
  std::vector<Point> points_;
};

}  // namespace epprof
