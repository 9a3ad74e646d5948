// Functions of the Python module over analysis/api.h.
#include "python/convert.h"

#include "analysis/api.h"

enum {
  kOps = 7, kCalls = 7, kActivities = 9, kWaits = 3, kLanes = 1, kThreads = 1, kChanges = 1,
  kFactors = 1, kRemoved = 2, kLeftOut = 5
};
enum {
  kColumns = kOps + kCalls + kActivities + kWaits + kLanes + kThreads + kChanges + kFactors +
             kRemoved + kLeftOut
};

// Size of an item, and whether the column may be empty: an order of rows that are in order.
static const struct {
  unsigned char size, optional;
} columns_of[kColumns] = {
    {8, 0}, {8, 0}, {4, 0}, {4, 0}, {4, 1}, {4, 1}, {8, 1},                  // ops
    {8, 0}, {8, 0}, {4, 0}, {4, 0}, {4, 0}, {1, 0}, {4, 1},                  // calls
    {8, 0}, {8, 0}, {8, 1}, {8, 1}, {4, 0}, {4, 0}, {4, 0}, {4, 0}, {4, 1},  // activities
    {8, 0}, {4, 0}, {4, 0},                                                  // waits
    {4, 0},                                                                  // lanes
    {8, 0},                                                                  // threads
    {1, 1},                                                                  // changes of ops
    {8, 1},                                                                  // factors
    {1, 1}, {1, 1},                                                          // removed
    {8, 0}, {8, 0}, {4, 0}, {1, 0}, {4, 1},                                  // left out
};

// Sets the number of rows of the columns from `first`. Returns -1 if they differ in length.
static int rows_of(const Py_buffer* views, int first, int count, size_t* rows) {
  *rows = (size_t)(views[first].len / columns_of[first].size);
  for (int i = first; i < first + count; i++) {
    size_t size = columns_of[i].size, length = (size_t)views[i].len;
    if (length == *rows * size || (columns_of[i].optional && !length)) continue;
    PyErr_SetString(PyExc_ValueError, "columns differ in length");
    return -1;
  }
  return 0;
}

static int fill(epprof_path_input* in, const Py_buffer* views, size_t variants) {
  size_t threads, changes, factors;
  int calls = kOps, activities = calls + kCalls, waits = activities + kActivities;
  int lanes = waits + kWaits, thread = lanes + kLanes, change = thread + kThreads;
  int factor = change + kChanges, removed = factor + kFactors, left_out = removed + kRemoved;
  if (rows_of(views, 0, kOps, &in->ops) < 0 || rows_of(views, calls, kCalls, &in->calls) < 0 ||
      rows_of(views, activities, kActivities, &in->activities) < 0 ||
      rows_of(views, waits, kWaits, &in->waits) < 0 ||
      rows_of(views, lanes, kLanes, &in->lanes) < 0 ||
      rows_of(views, thread, kThreads, &threads) < 0 ||
      rows_of(views, change, kChanges, &changes) < 0 ||
      rows_of(views, factor, kFactors, &factors) < 0 ||
      rows_of(views, left_out, kLeftOut, &in->left_out) < 0) {
    return -1;
  }
  size_t rows_removed[kRemoved] = {in->calls, in->activities};
  for (int i = 0; i < kRemoved; i++) {
    size_t length = (size_t)views[removed + i].len;
    if (!length || length == rows_removed[i]) continue;
    PyErr_SetString(PyExc_ValueError, "removed rows need one value per row");
    return -1;
  }
  if (threads != in->threads) {
    PyErr_SetString(PyExc_ValueError, "a thread has no row");
    return -1;
  }
  if (changes != (factors ? in->ops + 1 : 0)) {
    PyErr_SetString(PyExc_ValueError, "changes need one value per op and one for no op");
    return -1;
  }
  const uint8_t* rows = views[change].buf;
  size_t last = 0;
  for (size_t i = 0; i < changes; i++) last = rows[i] > last ? rows[i] : last;
  if (factors && factors < (last + 1) * EPPROF_FACTORS * variants) {
    PyErr_SetString(PyExc_ValueError, "a change has no factors");
    return -1;
  }
  const void* data[kColumns];
  for (int i = 0; i < kColumns; i++) data[i] = views[i].len ? views[i].buf : NULL;
  const void** at = data;
  in->op_start = *at++;
  in->op_end = *at++;
  in->op_thread = *at++;
  in->op_parent = *at++;
  in->op_start_order = *at++;
  in->op_end_order = *at++;
  in->op_added = *at++;
  in->call_start = *at++;
  in->call_end = *at++;
  in->call_thread = *at++;
  in->call_op = *at++;
  in->call_lane = *at++;
  in->call_wait = *at++;
  in->call_start_order = *at++;
  in->activity_start = *at++;
  in->activity_end = *at++;
  in->activity_length = *at++;
  in->activity_freed = *at++;
  in->activity_lane = *at++;
  in->activity_call = *at++;
  in->activity_op = *at++;
  in->activity_mark = *at++;
  in->activity_order = *at++;
  in->wait_time = *at++;
  in->wait_lane = *at++;
  in->wait_mark = *at++;
  in->lane_context = *at++;
  in->thread_own_until = *at++;
  in->change = *at++;
  in->factors = *at++;
  in->call_removed = *at++;
  in->activity_removed = *at++;
  in->left_out_start = *at++;
  in->left_out_end = *at++;
  in->left_out_thread = *at++;
  in->left_out_variants = *at++;
  in->left_out_order = *at++;
  return 0;
}

static PyObject* critical_path(PyObject* Py_UNUSED(m), PyObject* args, PyObject* kwargs) {
  static char* names[] = {"", "threads", "home", "start_ns", "end_ns", "latency_ns",
                          "variants", "rows", "follow_home", "ends_with_home", NULL};
  PyObject* given;
  long long start, end, latency;
  int threads, home, variants, rows, follow_home, ends_with_home;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!$iiLLLippp", names, &PyTuple_Type, &given,
                                   &threads, &home, &start, &end, &latency, &variants, &rows,
                                   &follow_home, &ends_with_home)) {
    return NULL;
  }
  if (PyTuple_Size(given) != kColumns || home < 0 || home >= threads) {
    PyErr_SetString(PyExc_ValueError, "wrong number of columns, or no such thread");
    return NULL;
  }
  Py_buffer views[kColumns];
  int held = 0;
  PyObject* result = NULL;
  for (; held < kColumns; held++) {
    if (PyObject_GetBuffer(PyTuple_GetItem(given, held), &views[held], PyBUF_SIMPLE) < 0) {
      goto done;
    }
  }
  epprof_path_input in = {.threads = (size_t)threads, .home = home, .start = start, .end = end,
                      .latency = latency, .follow_home = follow_home,
                      .ends_with_home = ends_with_home};
  if (fill(&in, views, rows || variants == 1 ? 1 : 8) < 0) goto done;
  if (!in.factors && !rows && variants != 1 && variants != 4) {
    PyErr_SetString(PyExc_ValueError, "eight variants need factors");
    goto done;
  }
  epprof_columns* found;
  Py_BEGIN_ALLOW_THREADS
  found = epprof_critical_path(&in, variants, rows);
  Py_END_ALLOW_THREADS
  result = found ? columns_to_dict(found) : PyErr_NoMemory();
done:
  while (held > 0) PyBuffer_Release(&views[--held]);
  return result;
}

// Releases the buffers. Returns None, or NULL with an exception if they do not fit together.
static PyObject* done_if(int fits, Py_buffer** views, size_t count) {
  for (size_t i = 0; i < count; i++) PyBuffer_Release(views[i]);
  if (!fits) {
    PyErr_SetString(PyExc_ValueError, "columns differ in length, or a group or parent is invalid");
    return NULL;
  }
  Py_INCREF(Py_None);
  return Py_None;
}

static PyObject* add_activities(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer sums, group, kind, work, start, duration, bytes, call, call_start;
  if (!PyArg_ParseTuple(args, "w*y*y*y*y*y*y*y*y*", &sums, &group, &kind, &work, &start, &duration,
                        &bytes, &call, &call_start)) {
    return NULL;
  }
  PyObject* result = NULL;
  Py_ssize_t rows = kind.len, row_bytes = 8 * EPPROF_MEASURES;
  int fits = group.len == 4 * rows && work.len == rows && start.len == 8 * rows &&
             duration.len == 8 * rows && bytes.len == 8 * rows && call.len == 8 * rows &&
             sums.len >= row_bytes && sums.len % row_bytes == 0;
  if (fits) {
    epprof_activity_rows in = {.rows = (size_t)rows, .groups = sums.len / row_bytes - 1,
                           .group = group.buf, .kind = kind.buf, .is_work = work.buf,
                           .start = start.buf, .duration = duration.buf, .bytes = bytes.buf,
                           .call = call.buf, .call_start = call_start.buf};
    Py_BEGIN_ALLOW_THREADS
    epprof_add_activities(&in, sums.buf);
    Py_END_ALLOW_THREADS
    Py_INCREF(Py_None);
    result = Py_None;
  } else {
    PyErr_SetString(PyExc_ValueError, "columns differ in length");
  }
  Py_buffer* views[] = {&sums, &group, &kind, &work, &start, &duration, &bytes, &call, &call_start};
  for (size_t i = 0; i < sizeof views / sizeof *views; i++) PyBuffer_Release(views[i]);
  return result;
}

static PyObject* add_covered(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer covered, last, group, work, start, duration;
  if (!PyArg_ParseTuple(args, "w*w*y*y*y*y*", &covered, &last, &group, &work, &start, &duration)) {
    return NULL;
  }
  PyObject* result = NULL;
  Py_ssize_t rows = work.len;
  if (last.len == 2 * covered.len && group.len == 4 * rows && start.len == 8 * rows &&
      duration.len == 8 * rows) {
    epprof_activity_rows in = {.rows = (size_t)rows, .groups = covered.len / 8, .group = group.buf,
                           .is_work = work.buf, .start = start.buf, .duration = duration.buf};
    int ordered;
    Py_BEGIN_ALLOW_THREADS
    ordered = epprof_add_covered(&in, covered.buf, last.buf);
    Py_END_ALLOW_THREADS
    result = PyBool_FromLong(ordered);
  } else {
    PyErr_SetString(PyExc_ValueError, "columns differ in length");
  }
  Py_buffer* views[] = {&covered, &last, &group, &work, &start, &duration};
  for (size_t i = 0; i < sizeof views / sizeof *views; i++) PyBuffer_Release(views[i]);
  return result;
}

static PyObject* add_by_group(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer sums, group, value;
  if (!PyArg_ParseTuple(args, "w*y*y*", &sums, &group, &value)) return NULL;
  Py_ssize_t rows = value.len / 8;
  int fits = (group.len == 8 * rows || group.len == 4 * rows) && value.len == 8 * rows &&
             sums.len >= 8 && sums.len % 8 == 0;
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    fits = epprof_add_by_group(group.buf, group.len == 8 * rows, value.buf, (size_t)rows, sums.buf,
                               sums.len / 8 - 1);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&sums, &group, &value};
  return done_if(fits, views, 3);
}

static PyObject* add_column(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer codes, column;
  long long low, span;
  if (!PyArg_ParseTuple(args, "w*y*LL", &codes, &column, &low, &span)) return NULL;
  Py_ssize_t rows = codes.len / 8;
  int fits = codes.len == 8 * rows && (column.len == codes.len || column.len == 4 * rows);
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    epprof_add_column(codes.buf, column.buf, column.len == codes.len, (size_t)rows, low, span);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&codes, &column};
  return done_if(fits, views, 2);
}

static PyObject* number_groups(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer codes, first;
  long long size, count = -1;
  if (!PyArg_ParseTuple(args, "w*w*L", &codes, &first, &size)) return NULL;
  Py_ssize_t rows = codes.len / 8;
  int fits = codes.len == 8 * rows && size >= 0 && first.len >= 8 * (size < rows ? size : rows);
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    count = epprof_number_groups(codes.buf, (size_t)rows, first.buf, size);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&codes, &first};
  PyObject* result = done_if(count != -1, views, 2);
  if (!result) return NULL;
  Py_DECREF(result);
  return count < 0 ? PyErr_NoMemory() : PyLong_FromLongLong(count);
}

static PyObject* find_positions(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer found, sorted, values;
  int after_equal;
  if (!PyArg_ParseTuple(args, "w*y*y*p", &found, &sorted, &values, &after_equal)) return NULL;
  int fits = found.len == values.len && values.len % 8 == 0 && sorted.len % 8 == 0;
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    epprof_find_positions(sorted.buf, (size_t)sorted.len / 8, values.buf, (size_t)values.len / 8,
                          after_equal, found.buf);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&found, &sorted, &values};
  return done_if(fits, views, 3);
}

static PyObject* merge_intervals(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer merged_starts, merged_ends, starts, ends;
  if (!PyArg_ParseTuple(args, "w*w*y*y*", &merged_starts, &merged_ends, &starts, &ends)) return NULL;
  int fits = starts.len % 8 == 0 && ends.len == starts.len && merged_starts.len == starts.len &&
             merged_ends.len == starts.len;
  int64_t count = 0;
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    count = epprof_merge_intervals(starts.buf, ends.buf, (size_t)starts.len / 8, merged_starts.buf,
                                   merged_ends.buf);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&merged_starts, &merged_ends, &starts, &ends};
  PyObject* result = done_if(fits, views, 4);
  Py_XDECREF(result);
  return result ? PyLong_FromLongLong(count) : NULL;
}

static PyObject* find_first(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer found, earliest, values, mask, times;
  if (!PyArg_ParseTuple(args, "w*w*y*y*y*", &found, &earliest, &values, &mask, &times)) return NULL;
  int fits = found.len == times.len && earliest.len == times.len && times.len % 8 == 0 &&
             values.len == 8 * mask.len;
  int64_t last = -1;
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    last = epprof_find_first(values.buf, mask.buf, (size_t)mask.len, times.buf,
                             (size_t)times.len / 8, earliest.buf, found.buf);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&found, &earliest, &values, &mask, &times};
  PyObject* result = done_if(fits, views, 5);
  Py_XDECREF(result);
  return result ? PyLong_FromLongLong(last) : NULL;
}

static PyObject* add_covered_before(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer covered, starts, ends, total, times;
  int sign;
  if (!PyArg_ParseTuple(args, "w*y*y*y*y*i", &covered, &starts, &ends, &total, &times, &sign)) {
    return NULL;
  }
  int fits = covered.len == times.len && times.len % 8 == 0 && starts.len == ends.len &&
             starts.len % 8 == 0 && total.len >= starts.len;
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    epprof_add_covered_before(starts.buf, ends.buf, total.buf, (size_t)starts.len / 8, times.buf,
                              (size_t)times.len / 8, sign, covered.buf);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&covered, &starts, &ends, &total, &times};
  return done_if(fits, views, 5);
}

static PyObject* extend_ranges(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer starts, ends, group, begin, end;
  if (!PyArg_ParseTuple(args, "w*w*y*y*y*", &starts, &ends, &group, &begin, &end)) return NULL;
  int fits = starts.len == ends.len && starts.len % 8 == 0 && group.len % 8 == 0 &&
             begin.len == group.len && end.len == group.len;
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    fits = epprof_extend_ranges(group.buf, begin.buf, end.buf, (size_t)group.len / 8, starts.buf,
                                ends.buf, starts.len / 8);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&starts, &ends, &group, &begin, &end};
  return done_if(fits, views, 5);
}

static PyObject* find_nearest(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer nearest, parent, mask;
  if (!PyArg_ParseTuple(args, "w*y*y*", &nearest, &parent, &mask)) return NULL;
  int fits = parent.len == 8 * mask.len && nearest.len == parent.len, ordered = 0;
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    ordered = epprof_find_nearest(parent.buf, mask.buf, (size_t)mask.len, nearest.buf);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&nearest, &parent, &mask};
  PyObject* result = done_if(fits, views, 3);
  if (!result) return NULL;
  Py_DECREF(result);
  return PyBool_FromLong(ordered);
}

static PyObject* count_levels(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer times, levels, up, down;
  if (!PyArg_ParseTuple(args, "w*w*y*y*", &times, &levels, &up, &down)) return NULL;
  int fits = up.len % 8 == 0 && down.len % 8 == 0 && times.len >= up.len + down.len &&
             2 * levels.len >= up.len + down.len;
  size_t size = 0;
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    size = epprof_count_levels(up.buf, (size_t)up.len / 8, down.buf, (size_t)down.len / 8,
                               times.buf, levels.buf);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&times, &levels, &up, &down};
  PyObject* result = done_if(fits, views, 4);
  if (!result) return NULL;
  Py_DECREF(result);
  return PyLong_FromSize_t(size);
}

static PyObject* number_ops(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer end, depth, parent;
  if (!PyArg_ParseTuple(args, "w*w*y*", &end, &depth, &parent)) return NULL;
  int fits = end.len == parent.len && depth.len == parent.len && parent.len % 8 == 0, ordered = 0;
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    ordered = epprof_number_ops(parent.buf, (size_t)parent.len / 8, end.buf, depth.buf);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&end, &depth, &parent};
  PyObject* result = done_if(fits, views, 3);
  if (!result) return NULL;
  Py_DECREF(result);
  return PyBool_FromLong(ordered);
}

static PyObject* add_to_parents(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer totals, parent;
  if (!PyArg_ParseTuple(args, "w*y*", &totals, &parent)) return NULL;
  int fits = totals.len == parent.len && parent.len % 8 == 0;
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    fits = epprof_add_to_parents(totals.buf, parent.buf, (size_t)parent.len / 8);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&totals, &parent};
  return done_if(fits, views, 2);
}

static PyObject* find_outermost(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer found, until, group, end;
  if (!PyArg_ParseTuple(args, "w*w*y*y*", &found, &until, &group, &end)) return NULL;
  int fits = group.len == 8 * found.len && end.len == group.len && until.len % 8 == 0;
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    fits = epprof_find_outermost(group.buf, end.buf, (size_t)found.len, until.buf, until.len / 8,
                                 found.buf);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&found, &until, &group, &end};
  return done_if(fits, views, 4);
}

static PyObject* add_to_bins(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer sums, edges, start, end, group, size;
  if (!PyArg_ParseTuple(args, "w*y*y*y*y*y*", &sums, &edges, &start, &end, &group, &size)) {
    return NULL;
  }
  epprof_timed_rows in = {.rows = (size_t)group.len / 8, .bins = (size_t)edges.len / 8 - 1,
                          .edges = edges.buf, .start = start.buf, .end = end.buf,
                          .group = group.buf, .size = size.len ? size.buf : NULL};
  Py_ssize_t row = EPPROF_BIN_SUMS * edges.len;  // of one group
  int fits = edges.len >= 16 && edges.len % 8 == 0 && group.len % 8 == 0 &&
             start.len == group.len && end.len == group.len &&
             (!size.len || size.len == group.len) && sums.len % row == 0;
  if (fits) {
    in.groups = sums.len / row;
    Py_BEGIN_ALLOW_THREADS
    fits = epprof_add_to_bins(&in, sums.buf);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&sums, &edges, &start, &end, &group, &size};
  return done_if(fits, views, 6);
}

static PyObject* order_rows(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer order, free, code;
  Py_ssize_t code_bytes;
  if (!PyArg_ParseTuple(args, "w*w*y*n", &order, &free, &code, &code_bytes)) return NULL;
  int fits = code_bytes > 0 && code.len % code_bytes == 0 && free.len % 8 == 0 && order.len % 4 == 0;
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    fits = epprof_order_rows(code.buf, (size_t)code_bytes, (size_t)(code.len / code_bytes), free.buf,
                             (size_t)free.len / 8, order.buf, order.len / 4);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&order, &free, &code};
  return done_if(fits, views, 3);
}

static PyObject* summarise_rows(PyObject* Py_UNUSED(m), PyObject* args) {
  Py_buffer longest, covered, overlapping, unsorted, first, order, start, end;
  Py_ssize_t block;
  if (!PyArg_ParseTuple(args, "w*w*w*w*y*y*y*y*n", &longest, &covered, &overlapping, &unsorted, &first,
                        &order, &start, &end, &block)) {
    return NULL;
  }
  epprof_row_summaries out = {.longest = longest.buf, .covered = covered.buf,
                              .is_overlapping = overlapping.buf, .is_unsorted = unsorted.buf};
  epprof_event_rows in = {.events = (size_t)start.len / 8, .rows = (size_t)overlapping.len,
                          .length = order.len / 4, .block = block, .first = first.buf,
                          .order = order.buf, .start = start.buf, .end = end.buf};
  int fits = block > 0 && longest.len / 8 * block >= in.length && covered.len == longest.len &&
             unsorted.len == overlapping.len && first.len == 8 * (overlapping.len + 1) &&
             end.len == start.len;
  if (fits) {
    Py_BEGIN_ALLOW_THREADS
    fits = epprof_summarise_rows(&in, &out);
    Py_END_ALLOW_THREADS
  }
  Py_buffer* views[] = {&longest, &covered, &overlapping, &unsorted, &first, &order, &start, &end};
  PyObject* result = done_if(fits, views, 8);
  if (!result) return NULL;
  Py_DECREF(result);
  return Py_BuildValue("LL", (long long)out.earliest, (long long)out.latest);
}

PyMethodDef analysis_functions[] = {
    {"add_by_group", add_by_group, METH_VARARGS, NULL},
    {"add_column", add_column, METH_VARARGS, NULL},
    {"number_groups", number_groups, METH_VARARGS, NULL},
    {"find_positions", find_positions, METH_VARARGS, NULL},
    {"merge_intervals", merge_intervals, METH_VARARGS, NULL},
    {"find_first", find_first, METH_VARARGS, NULL},
    {"add_covered_before", add_covered_before, METH_VARARGS, NULL},
    {"extend_ranges", extend_ranges, METH_VARARGS, NULL},
    {"find_nearest", find_nearest, METH_VARARGS, NULL},
    {"count_levels", count_levels, METH_VARARGS, NULL},
    {"number_ops", number_ops, METH_VARARGS, NULL},
    {"add_to_parents", add_to_parents, METH_VARARGS, NULL},
    {"find_outermost", find_outermost, METH_VARARGS, NULL},
    {"add_covered", add_covered, METH_VARARGS, NULL},
    {"add_activities", add_activities, METH_VARARGS, NULL},
    {"add_to_bins", add_to_bins, METH_VARARGS, NULL},
    {"order_rows", order_rows, METH_VARARGS, NULL},
    {"summarise_rows", summarise_rows, METH_VARARGS, NULL},
    {"critical_path", KEYWORDS(critical_path), NULL},
    {NULL, NULL, 0, NULL},
};
