// Sums of activities by group, in one pass over the rows.
#include <algorithm>

#include "analysis/api.h"
#include "core/activity_kind.h"

using namespace epprof;

void epprof_add_activities(const epprof_activity_rows* in, int64_t* sums) {
  for (size_t i = 0; i < in->rows; i++) {
    uint8_t kind = in->kind[i];
    if (!in->is_work[i]) continue;
    int64_t group = in->group[i];
    int64_t* sum = sums + (group < 0 ? in->groups : group);
    int64_t time = in->duration[i], bytes = std::max<int64_t>(in->bytes[i], 0);
    // Add as unsigned, because sums of damaged files may overflow.
    auto add = [sum, stride = in->groups + 1](int64_t measure, int64_t value) {
      int64_t& to = sum[measure * stride];
      to = static_cast<int64_t>(static_cast<uint64_t>(to) + static_cast<uint64_t>(value));
    };
    add(EPPROF_ACTIVITIES, 1);
    add(EPPROF_DEVICE_NS, time);
    add(EPPROF_BYTES, bytes);
    if (kind == kMemcpy) {
      add(EPPROF_MEMCPYS, 1);
      add(EPPROF_COPIED_BYTES, bytes);
      add(EPPROF_COPY_NS, time);
    } else if (kind == kMemset) {
      add(EPPROF_MEMSETS, 1);
    } else if (kind == kKernel) {
      add(EPPROF_KERNELS, 1);
      int64_t call = in->call[i];
      if (call < 0) continue;
      // Device times are interpolated, so a kernel can seem to start slightly before its launch.
      add(EPPROF_DELAY_NS, std::max<int64_t>(in->start[i] - in->call_start[call], 0));
      add(EPPROF_DELAYS, 1);
    }
  }
}

int epprof_add_covered(const epprof_activity_rows* in, int64_t* covered, int64_t* last) {
  int64_t *until = last, *latest = last + in->groups;
  for (size_t i = 0; i < in->rows; i++) {
    if (!in->is_work[i]) continue;
    int64_t group = in->group[i], start = in->start[i];
    if (start < latest[group]) return 0;
    latest[group] = start;
    int64_t end = static_cast<int64_t>(static_cast<uint64_t>(start) +
                                       static_cast<uint64_t>(in->duration[i]));
    if (end <= until[group]) continue;
    covered[group] += end - std::max(start, until[group]);
    until[group] = end;
  }
  return 1;
}
