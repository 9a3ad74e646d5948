#include "analysis/critical_path_rows.h"

#include <algorithm>

namespace epprof {

PathRows::PathRows(const epprof_path_input& in, bool is_kept) : in_(in), is_kept_(is_kept) {
  if (!is_kept) return;
  call_point_.assign(in.calls, -1);
  causes_.resize(in.activities);
  points_.reserve(2 * (in.calls + in.ops) + in.activities / 8 + 16);
}

void PathRows::follow(int32_t point, int32_t activity, Columns& out) const {
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
  while (point >= 0 || activity >= 0) {
    if (activity >= 0) {
      int32_t row = activity;
      size_t a = static_cast<size_t>(row);
      int64_t start = in_.activity_start[a];
      add(Step::kActivity, row, in_.activity_end[a],
          std::max<int64_t>(in_.activity_end[a] - start, 0));
      const Cause& cause = causes_[a];
      activity = point = -1;
      switch (cause.from) {
        case From::kStart: break;
        case From::kCall:
          add(Step::kLaunch, row, start, cause.gap);
          point = call_point_[static_cast<size_t>(in_.activity_call[a])];
          break;
        case From::kLane:
          add(Step::kGap, row, start, cause.gap);
          activity = cause.row;
          break;
        case From::kEvent:
          add(Step::kEvent, row, start, cause.gap);
          activity = cause.row;
          break;
        case From::kHost: point = cause.row; break;
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

}  // namespace epprof
