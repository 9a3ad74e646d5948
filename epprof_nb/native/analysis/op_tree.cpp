// The tree of ops whose rows are in preorder: each function is one pass over the rows.
#include "analysis/api.h"

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
    // Added as unsigned, because sums of damaged files may overflow.
    if (above >= 0) {
      totals[above] = static_cast<int64_t>(static_cast<uint64_t>(totals[above]) +
                                           static_cast<uint64_t>(totals[row]));
    }
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

int epprof_find_nearest(const int64_t* parent, const uint8_t* mask, size_t rows, int64_t* nearest) {
  for (size_t row = 0; row < rows; row++) {
    int64_t above = parent[row];
    if (above >= static_cast<int64_t>(row)) return 0;
    nearest[row] = mask[row] ? static_cast<int64_t>(row) : above < 0 ? -1 : nearest[above];
  }
  return 1;
}
