// Sums by group, and the tree of ops whose rows are in preorder, each in one pass over the rows.
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

}  // namespace

int epprof_add_by_group(const void* group, int is_wide, const int64_t* value, size_t rows,
                        int64_t* sums, int64_t groups) {
  if (is_wide) {
    return add_by_group(static_cast<const int64_t*>(group), value, rows, sums, groups);
  }
  return add_by_group(static_cast<const int32_t*>(group), value, rows, sums, groups);
}

int epprof_number_ops(const int64_t* parent, size_t rows, int64_t* end, int64_t* depth) {
  for (int64_t row = 0, count = static_cast<int64_t>(rows); row < count; row++) {
    int64_t above = parent[row];
    if (above < -1 || above >= row) return 0;
    // The ops from the previous one up to the parent have ended.
    int64_t open = row - 1;
    for (; open > above; open = parent[open]) end[open] = row;
    if (open != above) return 0;
    depth[row] = above < 0 ? 0 : depth[above] + 1;
  }
  for (int64_t open = static_cast<int64_t>(rows) - 1; open >= 0; open = parent[open]) {
    end[open] = static_cast<int64_t>(rows);
  }
  return 1;
}

int epprof_add_to_parents(int64_t* totals, const int64_t* parent, size_t rows) {
  for (size_t row = rows; row-- > 0;) {
    int64_t above = parent[row];
    if (above >= static_cast<int64_t>(row)) return 0;
    if (above >= 0) add(totals[above], totals[row]);
  }
  return 1;
}

int epprof_find_outermost(const int64_t* group, const int64_t* end, size_t rows, int64_t* until,
                          int64_t groups, uint8_t* is_outermost) {
  for (size_t row = 0; row < rows; row++) {
    int64_t at = group[row];
    if (at >= groups) return 0;
    is_outermost[row] = at >= 0 && until[at] <= static_cast<int64_t>(row);
    if (is_outermost[row]) until[at] = end[row];
  }
  return 1;
}
