// Positions of values in sorted columns, each searched from the position before.
#include <algorithm>

#include "analysis/api.h"
#include "analysis/search.h"

using namespace epprof;

void epprof_find_positions(const int64_t* sorted, size_t length, const int64_t* values, size_t rows,
                           int after_equal, int64_t* found) {
  size_t at = 0;
  for (size_t i = 0; i < rows; i++) {
    at = after_equal ? find(sorted, length, values[i], at, kLessEqual)
                     : find(sorted, length, values[i], at, kLess);
    found[i] = static_cast<int64_t>(at);
  }
}

int64_t epprof_find_first(const int64_t* values, const uint8_t* mask, size_t rows,
                          const int64_t* times, size_t count, int64_t* earliest, int64_t* found) {
  int64_t last = -1;
  size_t at = 0;
  for (size_t i = 0; i < rows; i++) {
    if (!mask[i]) continue;
    if (last < 0 || values[i] >= values[last]) last = static_cast<int64_t>(i);
    at = find(times, count, values[i], at, kLessEqual);
    if (!at || values[i] >= earliest[at - 1]) continue;
    earliest[at - 1] = values[i];
    found[at - 1] = static_cast<int64_t>(i);
  }
  return last;
}

void epprof_add_covered_before(const int64_t* starts, const int64_t* ends, const int64_t* total,
                               size_t intervals, const int64_t* times, size_t rows, int64_t sign,
                               int64_t* covered) {
  size_t at = 0;
  for (size_t i = 0; i < rows && intervals; i++) {
    at = find(starts, intervals, times[i], at, kLessEqual);
    if (!at) continue;
    // The last interval that has begun covers a part.
    auto part = static_cast<uint64_t>(std::min(times[i], ends[at - 1])) -
                static_cast<uint64_t>(starts[at - 1]);
    // As unsigned, because times of damaged files may overflow.
    uint64_t change = static_cast<uint64_t>(sign) * (static_cast<uint64_t>(total[at - 1]) + part);
    covered[i] = static_cast<int64_t>(static_cast<uint64_t>(covered[i]) + change);
  }
}

size_t epprof_count_levels(const int64_t* up, size_t ups, const int64_t* down, size_t downs,
                           int64_t* times, int32_t* levels) {
  size_t u = 0, d = 0, size = 0;
  while (u < ups || d < downs) {
    int64_t time = d == downs || (u < ups && up[u] < down[d]) ? up[u] : down[d];
    while (u < ups && up[u] == time) u++;
    while (d < downs && down[d] == time) d++;
    times[size] = time;
    levels[size++] = static_cast<int32_t>(u) - static_cast<int32_t>(d);
  }
  return size;
}
