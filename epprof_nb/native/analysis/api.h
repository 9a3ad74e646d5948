// Sums of activities, and the longest path through host threads and device lanes: the C functions
// that the Python module calls, documented in _native.pyi.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/columns.h"

#ifdef __cplusplus
extern "C" {
#endif

// Measures of `epprof_nb.analysis.base.activity_sums.MEASURES`, in that order.
enum {
  EPPROF_ACTIVITIES, EPPROF_DEVICE_NS, EPPROF_BYTES, EPPROF_KERNELS, EPPROF_MEMCPYS,
  EPPROF_MEMSETS, EPPROF_COPIED_BYTES, EPPROF_COPY_NS, EPPROF_DELAY_NS, EPPROF_DELAYS,
  EPPROF_MEASURES
};

typedef struct {
  size_t rows;
  int64_t groups;
  const int32_t* group;  // negative: none
  const uint8_t *kind, *is_work;
  const int64_t *start, *duration, *bytes, *call;  // call: a row, or -1
  const int64_t* call_start;
} epprof_activity_rows;

// Adds to `sums`: one row per measure, with a value per group and a last value for rows without a
// group.
void epprof_add_activities(const epprof_activity_rows* in, int64_t* sums);
// Adds the time in which each group works. `last` has two rows, the ends and starts so far, which
// later calls update. Returns 0 if a start precedes an earlier start of its group.
int epprof_add_covered(const epprof_activity_rows* in, int64_t* covered, int64_t* last);

// The following return 0 if a group or parent is not valid; the results are then incomplete.
// Adds each value to its group: int64_t if `is_wide`, else int32_t; -1 and `groups`: the last
// sum.
int epprof_add_by_group(const void* group, int is_wide, const int64_t* value, size_t rows,
                        int64_t* sums, int64_t groups);
// Sets each code to ``code * span + column - low``. Columns of int64_t if `is_wide`, else int32_t.
void epprof_add_column(int64_t* codes, const void* column, int is_wide, size_t rows, int64_t low,
                       int64_t span);
// Numbers codes below `size` by first appearance, and sets the first row of each. Returns their
// number; -1 if a code is not valid, -2 without memory.
int64_t epprof_number_groups(int64_t* codes, size_t rows, int64_t* first, int64_t size);
// Finds how many elements of an ascending column are less than each value, or also equal to it.
void epprof_find_positions(const int64_t* sorted, size_t length, const int64_t* values, size_t rows,
                           int after_equal, int64_t* found);
// Adds `sign` times the time that disjoint, ascending intervals cover before each time. `total` has
// the covered time before each interval.
void epprof_add_covered_before(const int64_t* starts, const int64_t* ends, const int64_t* total,
                               size_t intervals, const int64_t* times, size_t rows, int64_t sign,
                               int64_t* covered);
// Merges intervals that overlap or touch into disjoint ascending ones. Returns their number; -1 if
// the order of the intervals makes that slow.
int64_t epprof_merge_intervals(const int64_t* starts, const int64_t* ends, size_t rows,
                               int64_t* merged_starts, int64_t* merged_ends);
// Finds, of the rows in `mask`, the first one with the least value between each of some ascending
// times and the next: `earliest` and `found` are set. Returns the last row with the greatest value; -1
// for none.
int64_t epprof_find_first(const int64_t* values, const uint8_t* mask, size_t rows,
                          const int64_t* times, size_t count, int64_t* earliest, int64_t* found);
// Extends the time range of each group by the times of its rows; a negative group: none.
int epprof_extend_ranges(const int64_t* group, const int64_t* begin, const int64_t* end, size_t rows,
                         int64_t* starts, int64_t* ends, int64_t groups);
// Finds the nearest row in `mask` of each row: itself or an ancestor; -1: none. Returns 0, too, if
// a parent does not precede its row.
int epprof_find_nearest(const int64_t* parent, const uint8_t* mask, size_t rows, int64_t* nearest);
// Finds the distinct times of two ascending columns, and how many more of `up` than of `down` have
// passed then. Returns the number of these times.
size_t epprof_count_levels(const int64_t* up, size_t ups, const int64_t* down, size_t downs,
                           int64_t* times, int32_t* levels);
// Finds where the subtree of each op ends, and its number of ancestors. Returns 0, too, if the rows
// are not in preorder.
int epprof_number_ops(const int64_t* parent, size_t rows, int64_t* end, int64_t* depth);
// Adds the total of each op to its parent's, for rows in preorder.
int epprof_add_to_parents(int64_t* totals, const int64_t* parent, size_t rows);
// Finds which ops have no ancestor of their group, for rows in preorder whose subtrees end before
// `end`. `until` has 0 for each group. Ops of a negative group are never outermost.
int epprof_find_outermost(const int64_t* group, const int64_t* end, size_t rows, int64_t* until,
                          int64_t groups, uint8_t* is_outermost);

// Sums of `epprof_add_to_bins`: RUNNING, RUNNING_BYTES and WHOLE_BINS are changes along the bins.
enum {
  EPPROF_STARTED, EPPROF_STARTED_BYTES, EPPROF_BIN_NS, EPPROF_WHOLE_BINS, EPPROF_RUNNING,
  EPPROF_RUNNING_BYTES, EPPROF_BIN_SUMS
};

typedef struct {
  size_t rows, bins;
  int64_t groups;
  const int64_t* edges;  // of the bins, ascending
  const int64_t *start, *end, *group;
  const int64_t* size;  // bytes; null: none
} epprof_timed_rows;

// Adds activities where they begin and end: one row per sum, with `groups` values for each bin and
// one more. An activity that starts before the bins runs from the first one. Returns 0 if a group
// is not valid.
int epprof_add_to_bins(const epprof_timed_rows* in, int64_t* sums);

// Sets the events of each row, in the order of the table, from the first free position of the row
// on. Codes of `code_bytes` are the rows; `rows` or more: none. Returns 0 beyond `length`.
int epprof_order_rows(const void* code, size_t code_bytes, size_t events, int64_t* free, size_t rows,
                      int32_t* order, int64_t length);

typedef struct {
  size_t events, rows;
  int64_t length;        // of `order`
  int64_t block;         // events per block
  const int64_t* first;  // position of each row, and the end
  const int32_t* order;
  const int64_t *start, *end;
} epprof_event_rows;

typedef struct {
  int64_t *longest, *covered;  // of each block: duration of an event, and of all
  uint8_t *is_overlapping, *is_unsorted;  // of each row: an event starts before the previous ends, starts
  int64_t earliest, latest;
} epprof_row_summaries;

// Summarises events by block and row; an event that ends before it starts has no length. Returns 0
// if a position or event is not valid.
int epprof_summarise_rows(const epprof_event_rows* in, epprof_row_summaries* out);

// How an API call waits.
enum {
  EPPROF_NO_WAIT = 0,
  EPPROF_WAIT_LANE = 1,
  EPPROF_WAIT_CONTEXT = 2,
  EPPROF_WAIT_ALL = 3,
  EPPROF_WAIT_THREAD = 4,  // for the thread with the number `call_lane`, until the end of the call
  EPPROF_WAIT_MARK = 5,    // for the activities with the mark `call_lane`; -1: no activity
  EPPROF_WAIT_TIME = 6,    // until that time of the clock, however early the thread comes
  EPPROF_WAIT_OP = 7       // as long as the op `call_lane` of the thread takes from its start
};
// Meaning of an event that a lane waits for, if it is not a mark.
enum { EPPROF_UNKNOWN_WORK = -1, EPPROF_NO_WORK = -2 };
// The time that a factor applies to: code of the host, work of a device, delays before such work. A
// call with a delay factor of 0 does not exist and waits for nothing.
enum { EPPROF_HOST = 0, EPPROF_DEVICE = 1, EPPROF_DELAY = 2, EPPROF_FACTORS = 3 };

// Columns of one length each. An `order` lists the rows by ascending time; null: the rows are
// in this order. Rows of ops, threads, lanes and contexts are numbered from 0; -1: none.
typedef struct {
  size_t ops, calls, activities, waits, threads, lanes;
  const int64_t *op_start, *op_end;
  const int32_t *op_thread;  // -1: not part of the host's time
  const int32_t *op_parent;
  const int32_t *op_start_order, *op_end_order;
  const int64_t* op_added;  // time of the host after each op, as if it took longer; null: none
  const int64_t *call_start, *call_end;
  const int32_t *call_thread, *call_op, *call_lane;
  const uint8_t *call_wait;
  const int32_t* call_start_order;
  const int64_t *activity_start, *activity_end;
  const int64_t* activity_length;  // null: from start to end
  const int64_t* activity_freed;  // omitted part of the delay before an activity; null: nothing
  const int32_t *activity_lane, *activity_call, *activity_op;  // lane -1: not part of the path
  const int32_t* activity_mark;  // number of the mark of an event that stands for it; -1: none
  const int32_t *activity_order;
  const int64_t *wait_time;  // a lane waits for an event from this time on, ascending
  const int32_t *wait_lane, *wait_mark;
  const int32_t *lane_context;
  const int64_t *thread_own_until;  // until then, a thread takes the time after its first op
  const uint8_t *change;  // per op, then for no op: a row of `factors`
  // Factors of durations: one row per change, of EPPROF_FACTORS times `variants` values.
  const double* factors;  // null: 1 each
  // Variants, as bits, without some work: it takes no time, and such calls wait for nothing. Null: all
  // exists.
  const uint8_t *call_removed, *activity_removed;
  // Time that threads do not take in some variants, as if they spent it in removed calls that start
  // after others.
  size_t left_out;
  const int64_t *left_out_start, *left_out_end;
  const int32_t* left_out_thread;
  const uint8_t* left_out_variants;
  const int32_t* left_out_order;
  int64_t start, end, latency;
  int32_t home;  // the thread that starts the others
  int follow_home;  // an op of another thread, unless it takes the time before it, begins when
                    // `home` has come to its time, too
  int ends_with_home;  // the path ends with `home` or device work, whatever other threads still do
} epprof_path_input;

// Length of one variant; of eight with factors; or of four without, whose removed work differs. With
// `rows`: the path of the first as well. Null: out of memory.
epprof_columns* epprof_critical_path(const epprof_path_input* input, int variants, int rows);

#ifdef __cplusplus
}
#endif
