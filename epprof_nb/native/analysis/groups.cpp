// Groups of rows: their numbers, and sums by group, each in one pass over the rows.
#include <algorithm>
#include <new>
#include <vector>

#include "analysis/api.h"

namespace {

// With a table per lane, a group that repeats does not wait for its previous sum to be stored.
constexpr size_t kLanes = 4;
constexpr int64_t kFewGroups = 1 << 14;  // the tables stay in the cache

// Adds as unsigned, because sums of damaged files may overflow.
void add(int64_t& to, int64_t value) {
  to = static_cast<int64_t>(static_cast<uint64_t>(to) + static_cast<uint64_t>(value));
}

template <typename Group>
int add_by_group(const Group* group, const int64_t* value, size_t rows, int64_t* sums,
                 int64_t groups) {
  bool is_few = groups < kFewGroups && rows / kLanes > static_cast<size_t>(groups);
  size_t stride = is_few ? static_cast<size_t>(groups) + 1 : 0;
  std::vector<int64_t> lanes(kLanes * stride);
  int64_t* tables = is_few ? lanes.data() : sums;
  for (size_t i = 0; i < rows; i++) {
    int64_t at = group[i];
    if (at < -1 || at > groups) return 0;
    add(tables[i % kLanes * stride + static_cast<size_t>(at < 0 ? groups : at)], value[i]);
  }
  for (size_t i = 0; i < lanes.size(); i++) add(sums[i % stride], lanes[i]);
  return 1;
}

template <typename Value>
void add_column(int64_t* codes, const Value* column, size_t rows, int64_t low, int64_t span) {
  for (size_t i = 0; i < rows; i++) codes[i] = codes[i] * span + (column[i] - low);
}

// With numbers of 4 bytes, more of the table stays in the cache.
template <typename Number>
int64_t number_groups(int64_t* codes, size_t rows, int64_t* first, int64_t size) {
  std::vector<Number> numbers(static_cast<size_t>(size), -1);
  Number count = 0;
  for (size_t i = 0; i < rows; i++) {
    if (codes[i] < 0 || codes[i] >= size) return -1;
    Number& number = numbers[static_cast<size_t>(codes[i])];
    if (number < 0) {
      number = count++;
      first[number] = static_cast<int64_t>(i);
    }
    codes[i] = number;
  }
  return count;
}

}  // namespace

int epprof_add_by_group(const void* group, int is_wide, const int64_t* value, size_t rows,
                        int64_t* sums, int64_t groups) {
  if (is_wide) {
    return add_by_group(static_cast<const int64_t*>(group), value, rows, sums, groups);
  }
  return add_by_group(static_cast<const int32_t*>(group), value, rows, sums, groups);
}

void epprof_add_column(int64_t* codes, const void* column, int is_wide, size_t rows, int64_t low,
                       int64_t span) {
  if (is_wide) {
    add_column(codes, static_cast<const int64_t*>(column), rows, low, span);
  } else {
    add_column(codes, static_cast<const int32_t*>(column), rows, low, span);
  }
}

int64_t epprof_number_groups(int64_t* codes, size_t rows, int64_t* first, int64_t size) {
  try {
    return rows < INT32_MAX ? number_groups<int32_t>(codes, rows, first, size)
                            : number_groups<int64_t>(codes, rows, first, size);
  } catch (const std::bad_alloc&) {
    return -2;
  }
}

int epprof_extend_ranges(const int64_t* group, const int64_t* begin, const int64_t* end, size_t rows,
                         int64_t* starts, int64_t* ends, int64_t groups) {
  for (size_t i = 0; i < rows;) {
    int64_t at = group[i];
    if (at >= groups) return 0;
    // The range of a group that repeats stays in registers.
    int64_t start = begin[i], last = end[i];
    for (i++; i < rows && group[i] == at; i++) {
      start = std::min(start, begin[i]);
      last = std::max(last, end[i]);
    }
    if (at < 0) continue;
    starts[at] = std::min(starts[at], start);
    ends[at] = std::max(ends[at], last);
  }
  return 1;
}
