// Searches of sorted columns, each from the position of the search before.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <algorithm>

namespace epprof {

// Returns the first element that is not before a value, from the position `at` on.
template <typename IsBefore>
size_t find(const int64_t* sorted, size_t length, int64_t value, size_t at, IsBefore is_before) {
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
  auto before = [&](int64_t each) { return is_before(each, value); };
  return static_cast<size_t>(std::partition_point(sorted + low, sorted + high, before) - sorted);
}

inline constexpr auto kLess = [](int64_t a, int64_t b) { return a < b; };
inline constexpr auto kLessEqual = [](int64_t a, int64_t b) { return a <= b; };

}  // namespace epprof
