#include "ep/graphs/captured_graph.h"

#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "core/clock.h"
#include "core/fork.h"
#include "core/launch_log.h"
#include "core/op_stack.h"
#include "core/string_table.h"
#include "ep/call.h"
#include "ep/declaration.h"
#include "ep/host/stream_worker.h"
#include "ep/interpreter.h"
#include "ort/interned_details.h"
#include "ort/node_events.h"
#include "ort/run_observer.h"

namespace epprof::ep {
namespace {

std::atomic<int64_t> next_graph{1}, next_node{1};
thread_local GraphRun* current = nullptr;
ForkSafeMutex replays_mutex;
std::vector<RecordedReplay>& replays = *new std::vector<RecordedReplay>;
constexpr size_t kMostReplays = 1 << 20;  // per recording
thread_local bool allowed_here = false;

void use_graph_memory(GraphRun* run, bool use) {
  if (run->pool_is_ours == use) return;
  run->pool_is_ours = use;
  pool_capture(use ? run->graph->memory.get() : nullptr);
  if (run->graph->cuda) run->graph->cuda->use_memory(use);
}

void begin_capture(GraphRun* run, int device, CudaStream stream) {
  run->graph = std::make_shared<CapturedGraph>(run->session, run->gpu_graph_id);
  if (device >= 0) run->graph->cuda = std::make_unique<CudaGraph>(device, stream);
  run->state = GraphRunState::capturing;
  CapturedGraph& graph = *run->graph;
  graph.start = epprof_now_ns();
  bool recorded = recording_ops.load(std::memory_order_relaxed);
  graph.parent = recorded ? top_op() : 0;
  if (recorded) {
    graph.op = push_op(ort::intern_event_text("graph_capture"), kOrtEvent,
                       ort::intern_event_details({run->session, -1, 0, 0, 0, 0}), run, 0);
  }
  if (!graph.op) graph.op = reserve_op_ids(1);
  use_graph_memory(run, true);
}

void end_capture(GraphRun* run) {
  use_graph_memory(run, false);
  if (run->graph->cuda) run->graph->cuda->abandon();  // unless its capture has ended
  run->graph->end = epprof_now_ns();
  pop_owner(run);
}

// CUPTI records the work of the driver's graph, but does not know our graph.
void launch_graph(const CapturedGraph& graph) {
  if (uint64_t op = recording_ops.load(std::memory_order_relaxed) ? top_op() : 0) {
    ForkLockGuard lock(replays_mutex);
    if (replays.size() < kMostReplays) replays.push_back({op, graph.id});
  }
  graph.cuda->launch();
}

struct Replay {
  GraphRun* run;
  bool recorded;
  ep_replay_record record{};
  std::string failed;
};

// Returns false if the call failed.
bool replay_call(const CapturedCall& captured, Replay* replay) {
  std::vector<ep_tensor> inputs, outputs;
  for (const CapturedTensor& tensor : captured.inputs) inputs.push_back(tensor.view());
  for (const CapturedTensor& tensor : captured.outputs) outputs.push_back(tensor.view());
  ep_call call;
  call.replayed_outputs = &outputs;
  if (const CudaGraph* cuda = replay->run->graph->cuda.get()) {
    call.device = cuda->device();
    call.stream = cuda->stream();
  }
  char* error = call_python([&] {
    return interpreter.compute(captured.kernel, &call, inputs.data(), inputs.size(),
                               captured.function, replay->recorded ? &replay->record : nullptr);
  });
  if (!call.violation.empty()) {
    replay->run->node = captured.node;
    replay->run->violation = call.violation;
  }
  if (!error) return true;
  replay->failed = error;
  free(error);
  return false;
}

// A capture on a CUDA device makes no launches. Repeats the calls in the order of the stream, so
// that the run can continue without a capture.
void call_eagerly(GraphRun* run) {
  if (!run->graph->cuda || run->graph->calls.empty()) return;
  CurrentDevice current(run->graph->cuda->device());
  Replay replay{run, false, {}, {}};
  for (const auto& captured : run->graph->calls) {
    if (!replay_call(*captured, &replay)) throw std::runtime_error(replay.failed);
  }
}

void play_back(void* argument) {
  auto& replay = *static_cast<Replay*>(argument);
  void* entered = call_python(interpreter.enter);
  if (!entered) {
    replay.failed = "Python has ended, and its kernels with it";
    return;
  }
  int64_t start = epprof_now_ns();
  for (const auto& captured : replay.run->graph->calls) {
    replay.record.graph_node_id = captured->node_id;
    if (!replay_call(*captured, &replay)) break;
  }
  if (replay.recorded) interpreter.end_replay(&replay.record, start, epprof_now_ns());
  interpreter.leave(entered);
}

}  // namespace

CapturedTensor::CapturedTensor(const ep_tensor& source, size_t size)
    : tensor(source), bytes(size), dims(source.dims, source.dims + source.rank) {}

void CapturedTensor::keep_copy() {
  copy.resize(std::max<size_t>(bytes, 1));
  if (bytes) memcpy(copy.data(), tensor.data, bytes);
}

ep_tensor CapturedTensor::view() const {
  ep_tensor seen = tensor;
  seen.dims = dims.data();
  if (!copy.empty()) seen.data = const_cast<char*>(copy.data());
  return seen;
}

CapturedGraph::CapturedGraph(uint32_t session_number, int64_t graph_annotation_id)
    : id(next_graph.fetch_add(1)),
      session(session_number),
      gpu_graph_id(graph_annotation_id),
      memory(std::make_unique<CapturePool>()) {}

CapturedGraph::~CapturedGraph() {
  for (void* function : functions) interpreter.release_function(function);
}

void allow_capture(bool allowed) { allowed_here = allowed; }
bool capture_allowed() { return allowed_here; }

// For a replay, ONNX Runtime notifies the profiler of the run's start but not of its end.
uint64_t begin_call(uint32_t session) {
  if (!recording_ops.load(std::memory_order_relaxed)) return 0;
  if (ort::is_profiled_as_whole(session) || ort::opened_run(session)) return 0;
  uint64_t op = ort::begin_run(session);
  ort::set_profiled_run(session, op);
  return op;
}

void begin_graph_run(GraphRun* run) {
  run->outer = current;
  current = run;
  run->op = begin_call(run->session);
}

void end_graph_run(GraphRun* run) {
  // ONNX Runtime does not report the end of some runs that fail.
  if (run->state == GraphRunState::capturing) fail_capture(run);
  ort::end_run(run->op);
  current = run->outer;
}

GraphRun* graph_run(uint32_t session) {
  return current && current->session == session ? current : nullptr;
}

void graph_run_started(GraphRun* run, int device, CudaStream stream) {
  run->open_events = ort::open_events();
  if (run->state != GraphRunState::warm_up || run->graph) return;
  if (run->warm_ups-- > 0) return;
  begin_capture(run, device, stream);
}

void graph_run_ended(GraphRun* run) {
  if (run->state != GraphRunState::capturing) return;
  CudaGraph* graph = run->graph->cuda.get();
  std::string failed = graph && graph->has_begun() ? graph->end() : "";
  if (!failed.empty()) {
    abandon_capture(run, "", failed);
    CurrentDevice current(graph->device());  // ONNX Runtime has already waited for streams
    check_cuda("cuStreamSynchronize", cuda.StreamSynchronize(graph->stream()));
    return;
  }
  end_capture(run);
  run->state = GraphRunState::captured;
  if (graph) launch_graph(*run->graph);  // the capture has launched nothing
}

bool is_capturing(uint32_t session) {
  GraphRun* run = graph_run(session);
  return run && run->state == GraphRunState::capturing;
}

bool is_replaying() {
  return current && current->graph && current->state == GraphRunState::warm_up;
}

GraphRun* any_capture() {
  return current && current->state == GraphRunState::capturing ? current : nullptr;
}

void* hold_function(GraphRun* run, void* kernel) {
  void* function = interpreter.hold_function(kernel);
  if (function) run->graph->functions.push_back(function);
  return function;
}

void add_call(GraphRun* run, std::unique_ptr<CapturedCall> captured) {
  captured->node_id = next_node.fetch_add(1, std::memory_order_relaxed);
  run->graph->calls.push_back(std::move(captured));
}

uint64_t capturing_op() {
  uint64_t op = recording_ops.load(std::memory_order_relaxed) ? top_op() : 0;
  return op ? op : reserve_op_ids(1);
}

bool is_current(const CapturedCall& captured) {
  return interpreter.is_current(captured.kernel, captured.function);
}

void fail_capture(GraphRun* run) {
  end_capture(run);
  run->state = GraphRunState::failed;
}

void abandon_capture(GraphRun* run, const std::string& node, const std::string& what) {
  end_capture(run);
  run->state = GraphRunState::abandoned;
  run->node = node;
  run->violation = what;
  call_eagerly(run);
}

void report_violation(const char* what) {
  GraphRun* run = any_capture();
  if (!run || run->violated) return;
  run->violated = true;
  run->violation = what;
}

uint64_t open_node_op(uint32_t session, const std::string& name, const std::string& op_type,
                      int32_t node_index) {
  GraphRun* run = graph_run(session);
  if (!run || !recording_ops.load(std::memory_order_relaxed)) return 0;
  // Only the first of ONNX Runtime's runs in a call has a run-level profiler.
  if (ort::open_events() > run->open_events) return 0;
  uint32_t details = ort::intern_event_details(
      {session, node_index, ort::intern_event_text(op_type), ort::intern_event_text(kProviderName),
       0, 0});
  return push_op(ort::intern_event_text(name), kOrtNode, details, nullptr, 0);
}

std::vector<RecordedReplay> take_replays() {
  ForkLockGuard lock(replays_mutex);
  return std::move(replays);
}

std::string replay(GraphRun* run) {
  run->replayed = true;
  if (run->graph->cuda) {
    launch_graph(*run->graph);
    return "";
  }
  Replay replay{run, recording_ops.load(std::memory_order_relaxed), {}, {}};
  if (!replay.recorded) {
    submit_to_worker(play_back, &replay);
    wait_for_worker();
    return replay.failed;
  }
  static const uint32_t launch_call = intern("hostGraphLaunch");
  static const uint32_t wait_call = intern("hostStreamSynchronize");
  ep_graph graph{run->graph};
  replay.record.graph_id = run->graph->id;
  replay.record.correlation = next_host_correlation();
  replay.record.stream = interpreter.begin_replay(&graph);
  int64_t start = epprof_now_ns();
  submit_to_worker(play_back, &replay);
  int64_t submitted = epprof_now_ns();
  log_host_call(launch_call, start, submitted, replay.record.correlation);
  wait_for_worker();
  log_host_call(wait_call, submitted, epprof_now_ns(), next_host_correlation());
  return replay.failed;
}

}  // namespace epprof::ep
