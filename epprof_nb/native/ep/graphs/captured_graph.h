// Graphs: the calls of one run, with the buffers of the run. On the host device, a stream's worker
// replays the calls. On a CUDA device, the driver captures and replays their launches.
//
// ONNX Runtime asks the provider at every run whether it captures graphs, and replays without
// reading the inputs of the run. Only Python can bind the right buffers, so the provider answers
// yes only in runs that Python has marked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ep/api.h"
#include "ep/cuda/graph.h"
#include "ep/host/memory_pool.h"

namespace epprof::ep {

// A tensor that a call reads or writes: device memory, or a copy of host memory.
struct CapturedTensor {
  ep_tensor tensor{};
  size_t bytes = 0;
  std::vector<int64_t> dims;
  std::vector<char> copy;

  CapturedTensor(const ep_tensor& source, size_t size);
  void keep_copy();        // of the current values in host memory
  ep_tensor view() const;  // valid while this lives
};

// A call of the function that a kernel had during the capture.
struct CapturedCall {
  void* kernel = nullptr;
  void* function = nullptr;  // the interpreter's
  std::string node, op_type;
  int32_t node_index = -1;  // ONNX Runtime's; -1: unknown
  int64_t node_id = 0;  // of the graph
  size_t device_nodes = 1;  // nodes added to the driver's graph; 1 on the host device
  uint64_t op = 0;      // the op that captured it
  int64_t start = 0, end = 0;  // of the capture
  std::vector<CapturedTensor> inputs, outputs;
};

struct CapturedGraph {
  CapturedGraph(uint32_t session, int64_t gpu_graph_id);
  ~CapturedGraph();  // releases the functions; the caller holds the GIL
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  const int64_t id;  // unique in the process
  const uint32_t session;
  const int64_t gpu_graph_id;
  const std::unique_ptr<CapturePool> memory;  // memory of the calls, except bound buffers
  std::unique_ptr<CudaGraph> cuda;            // null: on the host device
  std::vector<std::unique_ptr<CapturedCall>> calls;
  std::vector<void*> functions;  // of the calls, and of calls that are constants of the graph
  std::string captured_in;      // the line of code, in words
  uint64_t op = 0;              // of the whole capture
  uint64_t parent = 0;          // the op that was open
  int64_t start = 0, end = 0;   // of the capture
};

using GraphPtr = std::shared_ptr<CapturedGraph>;

}  // namespace epprof::ep

struct ep_graph {
  epprof::ep::GraphPtr graph;
};

namespace epprof::ep {

// The state of a marked run.
enum class GraphRunState { warm_up, capturing, captured, abandoned, failed };

struct GraphRun {
  uint32_t session;
  int64_t gpu_graph_id;
  int warm_ups;    // eager runs before the capture
  GraphPtr graph;  // to replay; null: to be captured
  GraphRunState state = GraphRunState::warm_up;
  bool replayed = false;
  uint64_t op = 0;              // of the run; 0: not recorded
  int open_events = 0;          // ONNX Runtime's open events when the run began
  bool pool_is_ours = false;    // this thread allocates from the graph's memory
  bool violated = false;        // made a call that a capture does not allow
  std::string violation;        // the call, and the remedy
  std::string node;             // the node that made the call
  GraphRun* outer = nullptr;    // a node may run another session
};

// Sets whether the session that this thread creates may capture graphs.
void allow_capture(bool allowed);
bool capture_allowed();

// Opens the op of a session's call, which may make several of ONNX Runtime's runs; end it with
// `ort::end_run`. 0: not recorded, or already open.
uint64_t begin_call(uint32_t session);
void begin_graph_run(GraphRun*);  // marks the runs of this thread
void end_graph_run(GraphRun*);
GraphRun* graph_run(uint32_t session);  // the marked run of this thread; null: none

// To call at the start of each of ONNX Runtime's runs in it. `device` is -1 for the host device.
// `stream`: the user's, or null.
void graph_run_started(GraphRun*, int device, CudaStream stream);
void graph_run_ended(GraphRun*);  // throws

// Whether the calls of the session on this thread are being captured.
bool is_capturing(uint32_t session);
bool is_replaying();      // whether the marked run of this thread has a graph to replay
GraphRun* any_capture();  // the capture of any session on this thread; null: none
void* hold_function(GraphRun*, void* kernel);  // the kernel's current one, until the graph ends
void add_call(GraphRun*, std::unique_ptr<CapturedCall>);
uint64_t capturing_op();  // the op of the next captured call
bool is_current(const CapturedCall&);  // whether its kernel still has this function
void fail_capture(GraphRun*);
// Ends the capture, and the run continues eagerly. `what` is the reason, after the name of the node
// (empty if unknown). Throws if a captured call fails now.
void abandon_capture(GraphRun*, const std::string& node, const std::string& what);
void report_violation(const char* what);  // of the capture on this thread

// Opens an op for a node of a marked run unless ONNX Runtime has reported its event. 0: none.
uint64_t open_node_op(uint32_t session, const std::string& name, const std::string& op_type,
                      int32_t node_index);

// A replay of a CUDA graph in a recording, with the op that was open.
struct RecordedReplay {
  uint64_t op;
  int64_t graph;
};
std::vector<RecordedReplay> take_replays();

// Replays the graph of a run and waits for its end. Returns an error message, or an empty text, or
// throws. If a call cannot be replayed, the run has the reason.
std::string replay(GraphRun*);

}  // namespace epprof::ep
