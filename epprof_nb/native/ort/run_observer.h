// Runs as the observer sees them, with or without a profiler: when they start and end, and a hash
// of what they launched.
#pragma once

#include <cstdint>

namespace epprof::ort {

struct ObservedRun {
  uint64_t op;             // 0: the run did not start, or was not recorded
  uint64_t launches;       // launches, copies and memsets that the thread of the run made
  uint64_t launch_hash;    // of these in order
  uint64_t function_hash;  // the same without grids, blocks and sizes
  bool is_profiled;        // ONNX Runtime reported its nodes
  bool has_subgraphs;      // some of them have subgraphs; known of profiled runs only
};

// Observes the next run of this session on this thread, until `take_run`. The calls nest.
void observe_run(uint32_t session);
ObservedRun take_run();

// ONNX Runtime calls these for every run, profiled or not, on the run's thread. They open and close
// the op of an observed run that has no profiler.
void run_started(uint32_t session);
void run_ended(uint32_t session);

// The profiler of the run has opened its op; it starts before the run does.
void set_profiled_run(uint32_t session, uint64_t op);
void set_has_subgraphs(uint32_t session);

}  // namespace epprof::ort
