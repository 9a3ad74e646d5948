// What recording takes of the program's threads: they time a sample of their events in place, where
// caches are as cold as in the program.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// With the numbers of core/recording_costs.py.
enum {
  EPPROF_COST_STATEMENTS, EPPROF_COST_OPS, EPPROF_COST_MODULES, EPPROF_COST_BACKWARD,
  EPPROF_COST_LAUNCHES, EPPROF_COST_RUNS, EPPROF_COST_SUSPENSIONS, EPPROF_COST_INNER_STATEMENTS,
  EPPROF_COST_FUNCTIONS, EPPROF_COST_KINDS,
};

// When the profiler's part of an event begins; 0: this one is not timed. The first events of a kind
// on each thread in a recording are all timed, because they take longest.
int64_t epprof_cost_begin(int kind);
// When the next part of the event begins; 0 if it is not timed.
int64_t epprof_cost_resume(int64_t begin);
// Adds the time since `begin`, also for the events that are not timed. Does nothing if it is 0.
void epprof_cost_end(int kind, int64_t begin);
// Adds the CPU time of the calling thread since `begin`, of one event.
void epprof_cost_add(int kind, int64_t begin);
// Takes the sums, ns, and the numbers of events, and begins a recording or continues it.
void epprof_take_costs(int64_t ns[EPPROF_COST_KINDS], int64_t counts[EPPROF_COST_KINDS], int begins);

// What events of a kind took at an op: the one that was open after them. Only kinds from
// EPPROF_COST_SUSPENSIONS and statements, because the others have an op each.
typedef struct {
  uint64_t op_id;
  int32_t kind;
  int64_t ns, events;
} epprof_op_cost;
// Takes those of one op and kind, in no order; 0 if none are left. Call it before `take_costs`.
int epprof_take_op_cost(epprof_op_cost* cost);

#ifdef __cplusplus
}
#endif
