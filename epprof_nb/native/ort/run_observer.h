// Runs as the observer sees them, with or without a profiler: their starts and ends, and a hash of
// their launches.
#pragma once

#include <cstdint>

namespace epprof::ort {

struct ObservedRun {
  uint64_t op;             // 0: the run did not start, or was not recorded
  uint64_t launches;       // launches, copies and memsets of the run's thread
  uint64_t launch_hash;    // hash of these in order
  uint64_t function_hash;  // the same without grids, blocks and sizes
  bool is_profiled;        // ONNX Runtime reported its nodes
  bool has_subgraphs;      // some nodes have subgraphs; known only for profiled runs
};

// Observes the next run of this session on this thread, until `take_run`. The calls nest.
void observe_run(uint32_t session);
ObservedRun take_run();

// ONNX Runtime calls these for every run, profiled or not, on the run's thread. They open and close
// the op of an observed run that has no profiler.
void run_started(uint32_t session);
void run_ended(uint32_t session);

// To call when the profiler of the run has opened its op. The op starts before the run.
void set_profiled_run(uint32_t session, uint64_t op);
void set_has_subgraphs(uint32_t session);

}  // namespace epprof::ort
