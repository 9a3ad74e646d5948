// Unions of intervals in almost ascending order, as the work of several streams is.
#include <algorithm>

#include "analysis/api.h"

namespace {

constexpr size_t kMovesPerRow = 4;  // more of them take longer than a sort

}  // namespace

int64_t epprof_merge_intervals(const int64_t* starts, const int64_t* ends, size_t rows,
                               int64_t* merged_starts, int64_t* merged_ends) {
  size_t count = 0, moves = 0;
  for (size_t i = 0; i < rows; i++) {
    int64_t start = starts[i], end = ends[i];
    if (end <= start) continue;
    if (!count || start > merged_ends[count - 1]) {
      merged_starts[count] = start;
      merged_ends[count++] = end;
      continue;
    }
    if (start >= merged_starts[count - 1]) {
      merged_ends[count - 1] = std::max(merged_ends[count - 1], end);
      continue;
    }
    // It touches the intervals from `first` to `last`; none of them if these are equal.
    size_t first = count, last;
    while (first > 0 && merged_ends[first - 1] >= start) first--;
    for (last = first; last < count && merged_starts[last] <= end;) last++;
    moves += count - first;
    if (moves > kMovesPerRow * rows) return -1;
    size_t size = count - last;
    if (first < last) {
      start = std::min(start, merged_starts[first]);
      end = std::max(end, merged_ends[last - 1]);
    }
    if (last != first + 1) {
      for (int64_t* merged : {merged_starts, merged_ends}) {
        int64_t* from = merged + last;
        if (first == last) {
          std::copy_backward(from, from + size, from + size + 1);
        } else {
          std::copy(from, from + size, merged + first + 1);
        }
      }
      count = first + 1 + size;
    }
    merged_starts[first] = start;
    merged_ends[first] = end;
  }
  return static_cast<int64_t>(count);
}
