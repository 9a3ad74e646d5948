// The calls of PyTorch's modules in a recording, to find the call that created an autograd node.
//
// PyTorch numbers the nodes that a thread creates. The log keeps the numbers at which calls begin
// and end, and so finds the innermost call that was open when a node was created.
#pragma once

#include <cstddef>
#include <cstdint>

namespace epprof::torch {

// A call, as the log of its thread and its index there.
using CallId = uint64_t;
constexpr CallId kNoCall = 0;  // outside of all modules
constexpr CallId kUnknownCall = UINT64_MAX;

// Properties of the op of a module in a backward pass.
struct CallOp {
  uint32_t name, kind;
};

// The caller of these functions holds the GIL.
void start_module_logs();  // forgets the calls of earlier recordings
void stop_module_logs();
// Begins a log of the calling thread if it has none. `number`: the number of its next node.
void begin_module_log(uint64_t number);
// Returns the argument of `end_call`. `in_pass`: the call belongs to a backward pass.
CallId begin_call(CallOp op, uint64_t number, bool in_pass);
void end_call(CallId outer, uint64_t number);

// To call on any thread, without the GIL.
CallId call_of_node(uint64_t thread, uint64_t number);
CallId outer_call(CallId call);
bool op_of_call(CallId call, CallOp* op);

// The call that created a node of the calling thread, which holds the GIL. Unknown if other threads
// called modules at the same number. `lowest`: the lowest number with the same result.
CallId call_of_own_node(uint64_t number, uint64_t* lowest);

}  // namespace epprof::torch
