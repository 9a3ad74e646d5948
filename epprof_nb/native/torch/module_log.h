// The calls of PyTorch's modules in a recording, to find the one that created an autograd node.
//
// PyTorch numbers the nodes that a thread creates. The numbers at which calls begin and end therefore
// tell, for each number, the innermost call that was open when the node was created.
#pragma once

#include <cstddef>
#include <cstdint>

namespace epprof::torch {

// A call, by the log of its thread and its place there.
using CallId = uint64_t;
constexpr CallId kNoCall = 0;  // outside of all modules
constexpr CallId kUnknownCall = UINT64_MAX;

// What the op of a module in a backward pass is made of.
struct CallOp {
  uint32_t name, kind;
};

// The caller of these functions holds the GIL.
void start_module_logs();  // forgets the calls of earlier recordings
void stop_module_logs();
// The calling thread begins a log if it has none. `number`: of the node that it creates next.
void begin_module_log(uint64_t number);
// Returns what `end_call` takes. `in_pass`: the call belongs to a backward pass.
CallId begin_call(CallOp op, uint64_t number, bool in_pass);
void end_call(CallId outer, uint64_t number);

// Any thread, without the GIL.
CallId call_of_node(uint64_t thread, uint64_t number);
CallId outer_call(CallId call);
bool op_of_call(CallId call, CallOp* op);

// The call that created a node, if the calling thread did, which holds the GIL. Unknown if other
// threads called modules under the same number. `lowest`: the number down to which that holds.
CallId call_of_own_node(uint64_t number, uint64_t* lowest);

}  // namespace epprof::torch
