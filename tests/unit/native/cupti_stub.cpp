// A libcupti that reports what a test tells it: ids of graphs and nodes are the handles themselves.
#include <cstdint>

namespace {

using Callback = void (*)(void*, uint32_t domain, uint32_t id, const void* data);
Callback callback;

// CUpti_GraphData and CUpti_ResourceData of CUDA 13.0.
struct GraphData {
  uint64_t graph, original_graph, node, original_node;
  uint32_t node_type;
  uint64_t dependency, executable;
};
struct ResourceData {
  void *context, *stream, *descriptor;
};

}  // namespace

extern "C" {

void stub_report(uint32_t id, uint64_t graph, uint64_t node, uint64_t original,
                 uint64_t executable) {
  GraphData graph_data{graph, 0, node, original, 0, 0, executable};
  ResourceData data{nullptr, nullptr, &graph_data};
  callback(nullptr, 3, id, &data);
}

int cuptiGetVersion(uint32_t* version) {
  *version = 130001;
  return 0;
}
int cuptiSubscribe(void** subscriber, Callback given, void*) {
  callback = given;
  *subscriber = &callback;
  return 0;
}
int cuptiGetGraphNodeId(uint64_t node, uint64_t* id) {
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

int cuptiUnsubscribe() { return 0; }
int cuptiEnableCallback() { return 0; }
int cuptiGetCallbackName() { return 1; }
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
