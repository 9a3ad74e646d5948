// Records of the op and launch logs, as the drain turns them into columns. Categories, flags and
// domains are decoded by number in Python.
#pragma once

#include <cstdint>

namespace epprof {

enum Category : uint16_t {
  kRange = 0,
  kStatement = 1,
  kCell = 2,
  kOrtEvent = 3,  // an ONNX Runtime event, but not a run or node
  kOrtRun = 4,
  kOrtNode = 5,
  kFrameworkCall = 6,   // a call inside a framework, such as a module; ends before its caller
  kFrameworkRange = 7,  // a range that code opens and closes through a framework
  kNvtxRange = 8,       // a range or mark of NVTX
  kOperator = 9,        // an operator of PyTorch
  kAutogradNode = 10,   // a node of PyTorch's autograd graph, in the backward pass
  kGarbageCollection = 11,  // pauses of Python's garbage collector
  kTask = 12,  // a task of a scheduler, such as Dask, on the thread that runs it
};

enum OpFlags : uint16_t {
  kOpOpen = 1,  // still open at the drain; ends there
  kOpCoalesced = 2,
  kOpSuspended = 4,  // open, but suspended at the drain
};

// An op that has ended.
struct OpRecord {
  uint64_t op_id;
  uint64_t parent;
  int64_t start;
  int64_t end;
  int64_t duration;  // time open and not suspended
  int64_t suspended;  // for an operator or node, never suspended: its sequence number
  uint32_t name;
  uint32_t payload_id;  // by category: statement key, args id, event details id, framework op
                        // id, NVTX details id or id of the operator's shapes
  uint32_t count;       // executions; more than 1 only if coalesced
  uint16_t category;
  uint16_t flags;
};
static_assert(sizeof(OpRecord) == 64, "one cache line per op");

inline bool is_operator(uint16_t category) {
  return category == kOperator || category == kAutogradNode;
}

// Memory and threads of a node, which ONNX Runtime reports at its end.
struct NodeUsageRecord {
  static constexpr int64_t kUnknown = INT64_MIN;
  uint64_t op_id;
  int64_t arena_held, in_use, requested, peak;              // now; the peak since the allocator's start
  int64_t arena_held_delta, in_use_delta, requested_delta;  // since the start of the node
  int64_t pool_start, pool_wait;  // ns that its thread took to start and await others
};

constexpr uint32_t kNoStack = UINT32_MAX;

// The Python stack in which an op was opened.
struct OpStackRecord {
  uint64_t op_id;
  uint32_t stack;
};

// Set in LaunchRecord::op if no op was open on the launching thread. The other bits are then the
// open op of the cell's thread.
constexpr uint64_t kNoOpOnThread = uint64_t(1) << 63;

enum LaunchFlags : uint16_t {
  kCaptured = 1,           // the call added a node to a CUDA graph instead of running
  kProfilerInternal = 2,   // a call of the profiler itself
  kInProgress = 4,         // the thread was inside the call at the drain
  kCellThreadIdle = 8,     // since this thread's last launch, the cell's used no CPU time ...
  kCellThreadBusy = 16,    // ... or used some
};

enum Domain : uint16_t { kDriver = 0, kRuntime = 1, kHost = 2 };

// An API call that launches, copies, sets memory or waits.
struct LaunchRecord {
  uint64_t correlation;
  uint64_t op;
  int64_t start;
  int64_t end;
  uint32_t name;
  int32_t result;
  uint16_t flags;
  uint16_t domain;
  uint32_t stack;  // the Python stack; kNoStack: none
};

}  // namespace epprof
