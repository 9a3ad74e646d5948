// A libcupti that reports what a test tells it: ids of graphs and nodes are the handles themselves.
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using Requested = void (*)(uint8_t** buffer, size_t* size, size_t* records);
using Completed = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size,
                           size_t valid);
using Callback = void (*)(void*, uint32_t domain, uint32_t id, const void* data);
std::atomic<Callback> callback;
std::atomic<bool> in_callback, ended_in_callback;
std::atomic<uint32_t> correlations;
std::atomic<uint64_t> subscription;
std::atomic<uint32_t> callback_us;
std::atomic<bool> stopped;
auto& threads = *new std::vector<std::thread>;
Requested requested;
Completed completed;
thread_local std::vector<uint64_t> pushed;
uint32_t synchronizations, allocations, stale_bytes, clocks, finalizations;
uint8_t expects_zeros;
uint64_t context_id, captured_stream, clock_offset;
uint64_t (*clock_function)();
thread_local int result_of_call;

// CUpti_GraphData and CUpti_ResourceData of CUDA 13.0.
struct GraphData {
  uint64_t graph, original_graph, node, original_node;
  uint32_t node_type;
  uint64_t dependency, executable;
};
struct ResourceData {
  void *context, *stream, *descriptor;
};
// CUpti_CallbackData.
struct CallData {
  uint32_t site;
  const char* name;
  const void* params;
  const int* result;
  const char* symbol;
  void* context;
  uint32_t context_uid;
  uint64_t* data;
  uint32_t correlation;
};

constexpr uint32_t kLaunch = 307, kLaunchOfRuntime = 211;
constexpr uint32_t kMemset = 249;
constexpr uint32_t kKernel = 308, kPerThreadKernel = 309, kConfigKernel = 310, kGraph = 311;
constexpr uint32_t kRecord = 320, kStreamWait = 321, kEventWait = 322, kQuery = 323;
constexpr uint32_t kDestroy = 324, kContextWait = 325;
constexpr uint64_t kFirstOfOtherContext = 500;
constexpr uint32_t kBeginCapture = 427, kEndCapture = 428;
void* const kContext = &threads;

}  // namespace

extern "C" {

void stub_report(uint32_t id, uint64_t graph, uint64_t node, uint64_t original,
                 uint64_t executable) {
  GraphData graph_data{graph, 0, node, original, 0, 0, executable};
  ResourceData data{nullptr, nullptr, &graph_data};
  if (Callback subscribed = callback.load()) subscribed(nullptr, 3, id, &data);
}

// The begin or the end of a call.
void stub_report_params(uint32_t domain, uint32_t id, uint32_t correlation, int is_end,
                        const void* params, void* context) {
  Callback subscribed = callback.load();
  if (!subscribed) return;
  // From the begin to the end of a call. Null if it began before the subscription.
  thread_local uint64_t kept[3], kept_in[3];
  if (!is_end) kept_in[domain] = subscription;
  int result = result_of_call;
  CallData data{uint32_t(is_end), nullptr, params, &result, nullptr, context, 0,
                kept_in[domain] == subscription ? &kept[domain] : nullptr, correlation};
  subscribed(nullptr, domain, id, &data);
}

void stub_report_call(uint32_t domain, uint32_t id, uint32_t correlation, int is_end) {
  stub_report_params(domain, id, correlation, is_end, nullptr, kContext);
}

// A launch to a stream by a function of the driver. It creates a node of a graph, if one is given.
void stub_launch_to(uint32_t id, uint32_t correlation, uint64_t context, uint64_t stream,
                    uint64_t node) {
  // The parameters of cuLaunchKernel and cuGraphLaunch, and CUlaunchConfig.
  uint64_t kernel[] = {0, 0, 0, 0, 0, stream}, graph[] = {0, stream}, config[] = {0, 0, 0, 0, stream};
  uint64_t with_config[] = {uint64_t(config), 0};
  const void* params = id == kGraph ? graph : id == kConfigKernel ? with_config : kernel;
  for (int is_end : {0, 1}) {
    if (is_end && node) stub_report(13, 1, node, 0, 0);
    stub_report_params(1, id, correlation, is_end, params, reinterpret_cast<void*>(context));
  }
}

// A call on an event and a stream in context 3, with this result.
void stub_call_on(uint32_t id, uint32_t correlation, uint64_t first, uint64_t second, int result) {
  uint64_t params[] = {first, second};
  for (int is_end : {0, 1}) {
    result_of_call = result;
    stub_report_params(1, id, correlation, is_end, params, reinterpret_cast<void*>(3));
  }
  result_of_call = 0;
}
// Makes the clock of records differ from the registered one.
void stub_set_clock_offset(uint64_t ns) { clock_offset = ns; }
void stub_capture(uint64_t stream) { captured_stream = stream; }

// The creation (3) and destruction (4) of a stream, and the destruction of a context (2).
void stub_report_stream(uint32_t id, uint64_t context, uint64_t stream) {
  void* const reserved = reinterpret_cast<void*>(8);  // not to be read
  ResourceData data{reinterpret_cast<void*>(context), reinterpret_cast<void*>(stream), reserved};
  if (Callback subscribed = callback.load()) subscribed(nullptr, 3, id, &data);
}

// Whether something is subscribed.
int stub_is_subscribed() { return callback.load() != nullptr; }

// Calls of the runtime, each with one of the driver in it.
void stub_call(uint32_t times) {
  for (uint32_t i = 0; i < times; i++) {
    uint32_t correlation = ++correlations;
    stub_report_call(2, kLaunchOfRuntime, correlation, 0);
    stub_report_call(1, kLaunch, correlation, 0);
    stub_report_call(1, kLaunch, correlation, 1);
    stub_report_call(2, kLaunchOfRuntime, correlation, 1);
  }
}

// Threads that call, wait for events and create nodes until they are stopped.
void stub_start_threads(uint32_t count) {
  stopped = false;
  for (uint32_t i = 0; i < count; i++) {
    threads.emplace_back([] {
      while (!stopped) {
        stub_call(20);
        stub_call_on(kRecord, ++correlations, 0xe, 5, 0);
        stub_call_on(kStreamWait, ++correlations, 6, 0xe, 0);
        stub_call_on(kDestroy, ++correlations, 0xe, 0, 0);
        stub_report(13, 1, uint64_t(1) << 32, 0, 0);
        usleep(500);
      }
    });
  }
}
void stub_stop_threads() {
  stopped = true;
  for (std::thread& thread : threads) thread.join();
  threads.clear();
}

// Makes callbacks on nodes take this long.
void stub_slow_callbacks(uint32_t us) { callback_us = us; }
int stub_is_in_callback() { return in_callback; }
int stub_ended_in_callback() { return ended_in_callback; }

// Fills a buffer with one record. Returns 0 if none is free: CUPTI drops the record then.
int stub_record(const void* record, size_t bytes) {
  uint8_t* buffer = nullptr;
  size_t size = 0, records = 0;
  requested(&buffer, &size, &records);
  if (!buffer) return 0;
  for (size_t i = 0; i < size; i++) stale_bytes += buffer[i] != 0;
  memcpy(buffer, record, bytes);
  completed(nullptr, 0, buffer, size, bytes);
  return 1;
}

// Bytes of requested buffers that were not zero, and whether the session promises that they are.
uint32_t stub_stale_bytes() { return stale_bytes; }
int stub_expects_zeros() { return expects_zeros; }

// The external ids that are pushed on this thread, and the innermost one.
uint32_t stub_pushed() { return uint32_t(pushed.size()); }
uint64_t stub_last_pushed() { return pushed.empty() ? 0 : pushed.back(); }

uint32_t stub_synchronizations() { return synchronizations; }

// The id of the current context; 0 for none.
void stub_set_context(uint64_t id) { context_id = id; }
uint32_t stub_allocations() { return allocations; }

uint32_t stub_clocks() { return clocks; }
uint32_t stub_finalizations() { return finalizations; }

int cuptiGetVersion(uint32_t* version) {
  *version = 130001;
  return 0;
}
int cuptiSubscribe(void** subscriber, Callback given, void*) {
  subscription++;
  callback = given;
  *subscriber = reinterpret_cast<void*>(given);
  return 0;
}
int cuptiGetTimestamp(uint64_t* time) {
  if (!clock_function) return 1;
  *time = clock_function() + clock_offset;
  return 0;
}
int cuptiGetContextId(void* context, uint32_t* id) {
  *id = uint32_t(reinterpret_cast<uintptr_t>(context));
  return 0;
}
int cuptiGetStreamIdEx(void*, uint64_t stream, uint8_t is_per_thread, uint32_t* id) {
  *id = uint32_t(stream) + 1000 * is_per_thread;
  return 0;
}
int cuptiGetGraphNodeId(uint64_t node, uint64_t* id) {
  in_callback = true;
  if (callback_us) usleep(callback_us);
  in_callback = false;
  *id = node;
  return 0;
}
int cuptiGetGraphId(uint64_t graph, uint32_t* id) {
  *id = uint32_t(graph);
  return 0;
}
int cuptiGetGraphExecId(uint64_t executable, uint32_t* id) {
  *id = uint32_t(executable);
  return 0;
}

// Until then callbacks of other threads are delivered, as with CUPTI.
int cuptiUnsubscribe() {
  callback = nullptr;
  ended_in_callback = in_callback.load();
  return 0;
}
int cuptiGetCallbackName(uint32_t domain, uint32_t id, const char** name) {
  *name = domain == 1 && id == kLaunch            ? "cuLaunchHostFunc"
          : domain == 1 && id == kMemset          ? "cuMemsetD8Async"
          : domain == 1 && id == kKernel          ? "cuLaunchKernel"
          : domain == 1 && id == kPerThreadKernel ? "cuLaunchKernel_ptsz"
          : domain == 1 && id == kConfigKernel    ? "cuLaunchKernelEx"
          : domain == 1 && id == kGraph           ? "cuGraphLaunch"
          : domain == 1 && id == kBeginCapture    ? "cuStreamBeginCapture_v2"
          : domain == 1 && id == kEndCapture      ? "cuStreamEndCapture"
          : domain == 1 && id == kRecord          ? "cuEventRecord"
          : domain == 1 && id == kStreamWait      ? "cuStreamWaitEvent_ptsz"
          : domain == 1 && id == kEventWait       ? "cuEventSynchronize"
          : domain == 1 && id == kQuery           ? "cuStreamQuery"
          : domain == 1 && id == kDestroy         ? "cuEventDestroy_v2"
          : domain == 1 && id == kContextWait     ? "cuCtxSynchronize"
          : domain == 2 && id == kLaunchOfRuntime ? "cudaLaunchHostFunc"
                                                  : nullptr;
  return !*name;
}
int cuptiEnableCallback() { return 0; }
int cuptiSetThreadIdType() { return 0; }
int cuptiGetResultString() { return 1; }
int cuptiActivityRegisterCallbacks(Requested on_request, Completed on_completion) {
  requested = on_request;
  completed = on_completion;
  return 0;
}
int cuptiActivityRegisterTimestampCallback(uint64_t (*function)()) {
  clock_function = function;
  clocks++;
  return 0;
}
int cuptiFinalize() {
  finalizations++;
  return 0;
}
int cuptiActivityEnable() { return 0; }
int cuptiActivityDisable() { return 0; }
int cuptiActivitySetAttribute(uint32_t attribute, size_t*, uint8_t* value) {
  if (attribute == 5) expects_zeros = *value;
  return 0;
}
int cuptiActivityFlushAll() { return 0; }
int cuptiActivityGetNextRecord(uint8_t* buffer, size_t, void** record) {
  if (*record) return 1;
  *record = buffer;
  return 0;
}
int cuptiActivityGetNumDroppedRecords() { return 1; }
int cuptiActivityPushExternalCorrelationId(uint32_t, uint64_t id) {
  pushed.push_back(id);
  return 0;
}
int cuptiActivityPopExternalCorrelationId(uint32_t, uint64_t* id) {
  if (pushed.empty()) return 1;
  *id = pushed.back();
  pushed.pop_back();
  return 0;
}

// The driver.
int cuCtxPushCurrent_v2() { return 0; }
int cuCtxPopCurrent_v2() { return 0; }
int cuCtxSynchronize() {
  synchronizations++;
  return 0;
}
int cuCtxGetCurrent(void** context) {
  *context = kContext;
  return context_id ? 0 : 1;
}
int cuCtxGetId(void*, uint64_t* id) {
  *id = context_id;
  return 0;
}
int cuMemAlloc_v2() {
  allocations++;
  return 0;
}
int cuMemFree_v2() { return 0; }
int cuMemsetD8Async() {
  uint32_t correlation = ++correlations;
  const uint64_t params[] = {0, 0, 1, 0xff};
  for (int is_end : {0, 1}) stub_report_params(1, kMemset, correlation, is_end, params, kContext);
  return 0;
}
int cuStreamCreate() { return 0; }
int cuThreadExchangeStreamCaptureMode() { return 0; }
int cuStreamGetCtx(uint64_t stream, uint64_t* context) {
  *context = stream >= kFirstOfOtherContext ? 4 : 3;
  return 0;
}
int cuStreamIsCapturing(uint64_t stream, uint32_t* status) {
  *status = stream == captured_stream;
  return 0;
}
int cuGetErrorName() { return 1; }
int cuGetErrorString() { return 1; }

}  // extern "C"
