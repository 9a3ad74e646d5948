// Positions of values in a sorted column, each searched from the position before.
#include <algorithm>

#include "analysis/api.h"

namespace {

template <typename IsBefore>
void find(const int64_t* sorted, size_t length, const int64_t* values, size_t rows, int64_t* found,
          IsBefore is_before) {
  size_t at = 0;  // the first element that is not before the value
  for (size_t i = 0; i < rows; i++) {
    int64_t value = values[i];
    size_t low = at, high = at, step = 1;
    // The steps double until the position lies between both ends.
    while (high < length && is_before(sorted[high], value)) {
      low = high + 1;
      high = std::min(high + step, length);
      step *= 2;
    }
    for (step = 1; low > 0 && !is_before(sorted[low - 1], value); step *= 2) {
      high = low - 1;
      low = low > step ? low - step : 0;
    }
    at = static_cast<size_t>(std::partition_point(sorted + low, sorted + high,
                                                  [&](int64_t each) {
                                                    return is_before(each, value);
                                                  }) -
                             sorted);
    found[i] = static_cast<int64_t>(at);
  }
}

}  // namespace

void epprof_find_positions(const int64_t* sorted, size_t length, const int64_t* values, size_t rows,
                           int after_equal, int64_t* found) {
  if (after_equal) {
    find(sorted, length, values, rows, found, [](int64_t a, int64_t b) { return a <= b; });
  } else {
    find(sorted, length, values, rows, found, [](int64_t a, int64_t b) { return a < b; });
  }
}
