// Ops of PyTorch's backward passes: the module calls whose nodes run on each thread.
//
// The engine runs the nodes of a graph in descending order of their numbers, so those of one module
// call follow each other. Its op stays open until another call's node starts.
#pragma once

#include "torch/module_log.h"

namespace epprof::torch {

struct PassCounts {
  // Nodes that opened ops or made API calls, and those whose call is unknown. A node without a number
  // counts if its call is unknown.
  uint64_t nodes, unlinked;
};

// The caller of these functions holds the GIL.

// Returns the number of the pass, and its op. `follow`: look at the node that a thread executes whenever
// it opens an op or makes an API call. `switch_calls` serves other passes.
uint64_t begin_pass(uint32_t name, uint32_t kind, bool follow, uint64_t* op);
PassCounts end_pass(uint64_t pass);  // and its ops, also on other threads
void forget_passes();                // those of an earlier recording may still run
bool runs_pass();

// Makes a call and those that contain it the open ops of the calling thread.
void switch_calls(uint64_t pass, CallId call);

}  // namespace epprof::torch
