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
  for (size_t row = 0; row < in->rows; row++) {
    int64_t last_start = INT64_MIN, last_end = INT64_MIN;
    if (in->first[row] < 0 || in->first[row + 1] > in->length) return 0;
    for (int64_t at = in->first[row]; at < in->first[row + 1]; at++) {
      auto event = static_cast<size_t>(in->order[at]);
      if (event >= in->events) return 0;
      int64_t start = in->start[event], end = std::max(in->end[event], start);
      out->is_unsorted[row] |= start < last_start;
      out->is_overlapping[row] |= start < last_end;
      last_start = start;
      last_end = end;
      // As unsigned, because times of an overflown clock may overflow.
      auto length = static_cast<uint64_t>(end) - static_cast<uint64_t>(start);
      int64_t &longest = out->longest[at / in->block], &covered = out->covered[at / in->block];
      longest = std::max(longest, static_cast<int64_t>(length));
      covered = static_cast<int64_t>(static_cast<uint64_t>(covered) + length);
      out->earliest = std::min(out->earliest, start);
      out->latest = std::max(out->latest, end);
    }
  }
  return 1;
}
