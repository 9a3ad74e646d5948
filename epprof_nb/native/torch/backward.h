// Ops of PyTorch's backward passes: the module calls whose nodes run on each thread.
//
// The engine runs the nodes of a graph in descending order of their numbers, so the nodes of one
// module call are consecutive. The op of a call stays open until another call's node starts.
#pragma once

#include "torch/module_call_of_node.h"

namespace epprof::torch {

struct PassCounts {
  // Numbers of nodes that opened ops or made API calls, and of nodes whose call is unknown. A node
  // without a number counts if its call is unknown.
  uint64_t nodes, unlinked;
};

// The caller of these functions holds the GIL.

// Returns the number of the pass, and its op. `follow`: read the current node of a thread whenever
// it opens an op or makes an API call. Other passes use `switch_calls`.
uint64_t begin_pass(uint32_t name, uint32_t kind, bool follow, uint64_t* op);
PassCounts end_pass(uint64_t pass);  // and its ops, also on other threads
void forget_passes();                // passes of an earlier recording may still run
bool runs_pass();

// Makes a call and the calls around it the open ops of the calling thread.
void switch_calls(uint64_t pass, CallId call);

}  // namespace epprof::torch
