// A libcupti that reports what a test tells it: ids of graphs and nodes are the handles themselves.
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

using Callback = void (*)(void*, uint32_t domain, uint32_t id, const void* data);
std::atomic<Callback> callback;
std::atomic<bool> in_callback, ended_in_callback;
std::atomic<uint32_t> correlations;
std::atomic<uint64_t> subscription;
std::atomic<uint32_t> callback_us;
std::atomic<bool> stopped;
auto& threads = *new std::vector<std::thread>;

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

}  // namespace

extern "C" {

void stub_report(uint32_t id, uint64_t graph, uint64_t node, uint64_t original,
                 uint64_t executable) {
  GraphData graph_data{graph, 0, node, original, 0, 0, executable};
  ResourceData data{nullptr, nullptr, &graph_data};
  if (Callback subscribed = callback.load()) subscribed(nullptr, 3, id, &data);
}

// The begin or the end of a call.
void stub_report_call(uint32_t domain, uint32_t id, uint32_t correlation, int is_end) {
  Callback subscribed = callback.load();
  if (!subscribed) return;
  // From the begin to the end of a call. Null if it began before the subscription.
  thread_local uint64_t kept[3], kept_in[3];
  if (!is_end) kept_in[domain] = subscription;
  int result = 0;
  CallData data{uint32_t(is_end), nullptr, nullptr, &result, nullptr, nullptr, 0,
                kept_in[domain] == subscription ? &kept[domain] : nullptr, correlation};
  subscribed(nullptr, domain, id, &data);
}

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

// Threads that call and create nodes until they are stopped.
void stub_start_threads(uint32_t count) {
  stopped = false;
  for (uint32_t i = 0; i < count; i++) {
    threads.emplace_back([] {
      while (!stopped) {
        stub_call(20);
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
  bool is_driver = domain == 1 && id == kLaunch, is_runtime = domain == 2 && id == kLaunchOfRuntime;
  if (!is_driver && !is_runtime) return 1;
  *name = is_driver ? "cuLaunchHostFunc" : "cudaLaunchHostFunc";
  return 0;
}
int cuptiEnableCallback() { return 0; }
int cuptiSetThreadIdType() { return 0; }
int cuptiGetResultString() { return 1; }
int cuptiActivityRegisterCallbacks() { return 0; }
int cuptiActivityRegisterTimestampCallback() { return 0; }
int cuptiActivityEnable() { return 0; }
int cuptiActivityDisable() { return 0; }
int cuptiActivityFlushAll() { return 0; }
int cuptiActivityGetNextRecord() { return 1; }
int cuptiActivityGetNumDroppedRecords() { return 1; }
int cuptiActivityPushExternalCorrelationId() { return 1; }
int cuptiActivityPopExternalCorrelationId() { return 1; }

// The driver.
int cuCtxPushCurrent_v2() { return 1; }
int cuCtxPopCurrent_v2() { return 1; }
int cuCtxSynchronize() { return 1; }
int cuCtxGetCurrent() { return 1; }
int cuGetErrorName() { return 1; }
int cuGetErrorString() { return 1; }

}  // extern "C"
