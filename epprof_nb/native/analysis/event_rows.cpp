// Events by row of the timeline: their order, and summaries of blocks of them.
#include <algorithm>

#include "analysis/api.h"

namespace {

template <typename Code>
int order_rows(const Code* code, size_t events, int64_t* free, size_t rows, int32_t* order,
               int64_t length) {
  for (size_t i = 0; i < events; i++) {
    if (code[i] >= rows) continue;
    int64_t at = free[code[i]]++;
    if (at < 0 || at >= length) return 0;
    order[at] = static_cast<int32_t>(i);
  }
  return 1;
}

}  // namespace

int epprof_order_rows(const void* code, size_t code_bytes, size_t events, int64_t* free, size_t rows,
                      int32_t* order, int64_t length) {
  switch (code_bytes) {
    case 1: return order_rows(static_cast<const uint8_t*>(code), events, free, rows, order, length);
    case 2: return order_rows(static_cast<const uint16_t*>(code), events, free, rows, order, length);
    case 4: return order_rows(static_cast<const uint32_t*>(code), events, free, rows, order, length);
  }
  return 0;
}

int epprof_summarise_rows(const epprof_event_rows* in, epprof_row_summaries* out) {
  int64_t earliest = INT64_MAX, latest = INT64_MIN;
  for (size_t row = 0; row < in->rows; row++) {
    int64_t at = in->first[row], stop = in->first[row + 1], last_start = INT64_MIN, last_end = INT64_MIN;
    bool is_overlapping = false, is_unsorted = false;
    if (at < 0 || stop > in->length) return 0;
    while (at < stop) {
      int64_t block = at / in->block, end_of_block = std::min(stop, (block + 1) * in->block);
      int64_t longest = out->longest[block];
      // As unsigned, because times of an overflown clock may overflow.
      auto covered = static_cast<uint64_t>(out->covered[block]);
      for (; at < end_of_block; at++) {
        auto event = static_cast<size_t>(in->order[at]);
        if (event >= in->events) return 0;
        int64_t start = in->start[event], end = std::max(in->end[event], start);
        is_unsorted |= start < last_start;
        is_overlapping |= start < last_end;
        last_start = start;
        last_end = end;
        uint64_t length = static_cast<uint64_t>(end) - static_cast<uint64_t>(start);
        longest = std::max(longest, static_cast<int64_t>(length));
        covered += length;
        earliest = std::min(earliest, start);
        latest = std::max(latest, end);
      }
      out->longest[block] = longest;
      out->covered[block] = static_cast<int64_t>(covered);
    }
    out->is_overlapping[row] = is_overlapping;
    out->is_unsorted[row] = is_unsorted;
  }
  out->earliest = earliest;
  out->latest = latest;
  return 1;
}
