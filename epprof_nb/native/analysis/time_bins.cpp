// Sums of activities by time bin and group, in one pass over the rows.
#include <algorithm>

#include "analysis/api.h"
#include "analysis/search.h"

using namespace epprof;

int epprof_add_to_bins(const epprof_timed_rows* in, int64_t* sums) {
  const int64_t* edges = in->edges;
  size_t bins = in->bins, begin = 0, end_at = 0;
  int64_t count = in->groups, cells = (static_cast<int64_t>(bins) + 1) * count;
  // Adds as unsigned, because sums of damaged files may overflow.
  auto add = [sums, cells](int64_t sum, int64_t cell, int64_t value) {
    int64_t& to = sums[sum * cells + cell];
    to = static_cast<int64_t>(static_cast<uint64_t>(to) + static_cast<uint64_t>(value));
  };
  for (size_t i = 0; i < in->rows; i++) {
    int64_t group = in->group[i];
    if (group < 0 || group >= count) return 0;
    bool is_before = in->start[i] < edges[0];
    int64_t start = std::max(in->start[i], edges[0]);
    int64_t end = std::min(std::max(in->end[i], start), edges[bins]);
    begin = find(edges, bins + 1, start, begin, kLessEqual);
    end_at = find(edges, bins + 1, end, end_at, kLess);
    int64_t first = static_cast<int64_t>(std::min(begin - 1, bins - 1));
    int64_t last = std::max(static_cast<int64_t>(end_at) - 1, first);
    int64_t first_cell = first * count + group, last_cell = last * count + group;
    int64_t into_cell = is_before ? first_cell : first_cell + count;  // begins while it runs
    if (!is_before) add(EPPROF_STARTED, first_cell, 1);
    add(EPPROF_RUNNING, into_cell, 1);
    add(EPPROF_RUNNING, last_cell + count, -1);
    if (in->size) {
      if (!is_before) add(EPPROF_STARTED_BYTES, first_cell, in->size[i]);
      add(EPPROF_RUNNING_BYTES, into_cell, in->size[i]);
      add(EPPROF_RUNNING_BYTES, last_cell + count, -in->size[i]);
    }
    add(EPPROF_BIN_NS, first_cell, std::min(end, edges[first + 1]) - start);
    if (last == first) continue;
    add(EPPROF_BIN_NS, last_cell, end - edges[last]);
    add(EPPROF_WHOLE_BINS, first_cell + count, 1);
    add(EPPROF_WHOLE_BINS, last_cell, -1);
  }
  return 1;
}
