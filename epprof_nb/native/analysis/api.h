// The longest path through host threads and device lanes: the C functions that the Python module
// calls. _native.pyi documents the result, epprof_nb/analysis/path_input.py the columns.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/columns.h"

#ifdef __cplusplus
extern "C" {
#endif

// How an API call waits for a device.
enum { EP_NO_WAIT = 0, EP_WAIT_LANE = 1, EP_WAIT_CONTEXT = 2, EP_WAIT_ALL = 3 };

// Columns of one length each. An `order` lists the rows by ascending time; null: the rows are
// in this order. Rows of ops, threads, lanes and contexts are numbered from 0; -1: none.
typedef struct {
  size_t ops, calls, activities, waits, threads, lanes;
  const int64_t *op_start, *op_end;
  const int32_t *op_thread;  // -1: not a part of the host's time
  const int32_t *op_parent;
  const int32_t *op_start_order, *op_end_order;
  const int64_t *call_start, *call_end;
  const int32_t *call_thread, *call_op, *call_lane;
  const uint8_t *call_wait;
  const int32_t *call_start_order, *call_end_order;
  const int64_t *activity_start, *activity_end;
  const int32_t *activity_lane, *activity_call, *activity_op;  // lane -1: not a part of the path
  const int32_t *activity_order;
  const int64_t *wait_time;  // a lane waits for an event from this time on, ascending
  const int32_t *wait_lane;
  const int32_t *lane_context;
  const uint8_t *free_ops;  // of each op, and of none: bit k is set if it costs nothing in variant k
  int64_t start, end, latency;
  int32_t home;  // the thread that starts the others
} ep_path_input;

// Lengths of eight variants. With `rows`, of the first one only, and the path. Null: out of memory.
ep_columns* ep_critical_path(const ep_path_input* input, int rows);

#ifdef __cplusplus
}
#endif
