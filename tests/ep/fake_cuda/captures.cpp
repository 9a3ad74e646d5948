// Captures of streams, and graphs.
#include "state.h"

using namespace fake;

extern "C" {

int cuStreamIsCapturing(Stream* given, int* status) {
  std::lock_guard lock(mutex);
  Stream* stream = stream_of(given);
  *status = stream && stream->capture ? (stream->capture->invalid ? 2 : 1)
                                      : int(stream && stream->capturing);
  return stream ? 0 : kInvalidHandle;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(interaction_mode, *mode);
  return 0;
}

int cuStreamBeginCapture_v2(Stream* given, int mode) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuStreamBeginCapture", given, &stream)) return failed;
  if (!given || stream->capture) return kCaptureUnsupported;
  stream->capture = new Capture;
  stream->capture->origin = stream;
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->mode = mode;
  captures.insert(stream->capture);
  return 0;
}
int cuStreamEndCapture(Stream* given, Graph** graph) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  *graph = nullptr;
  int injected = usable("cuStreamEndCapture", given, &stream);
  if (!stream) return injected;
  Capture* capture = stream->capture;
  if (!capture || capture->origin != stream) return kInvalidValue;
  if (capture->mode != kRelaxedMode && capture->thread != std::this_thread::get_id()) {
    return kCaptureWrongThread;
  }
  int result = injected ? injected : capture->invalid ? kCaptureInvalidated : 0;
  for (auto [joined, waited_for] : capture->joined) {
    joined->capture = nullptr;
    if (!waited_for && !result) result = kCaptureUnjoined;
  }
  for (Event* event : events) {
    if (event->capture == capture) event->capture = nullptr;
  }
  stream->capture = nullptr;
  captures.erase(capture);
  if (result) {
    delete capture->graph;
  } else {
    *graph = capture->graph;
    graphs.insert(*graph);
  }
  delete capture;
  return result;
}
int cuStreamGetCaptureInfo_v2(Stream* given, int* status, uint64_t*, Graph** graph, const void**,
                              size_t*) {
  std::lock_guard lock(mutex);
  Stream* stream = stream_of(given);
  if (!stream) return kInvalidHandle;
  *status = !stream->capture ? 0 : stream->capture->invalid ? 2 : 1;
  *graph = stream->capture ? stream->capture->graph : nullptr;
  return 0;
}
int cuGraphGetNodes(Graph* graph, void**, size_t* count) {
  std::lock_guard lock(mutex);
  *count = graph->nodes.size();
  return 0;
}
int cuGraphInstantiateWithFlags(void** executable, Graph* graph, unsigned long long) {
  std::lock_guard lock(mutex);
  if (int failed = enter("cuGraphInstantiate")) return failed;
  if (!graphs.count(graph)) {
    misuse("cuGraphInstantiate of a graph that was destroyed");
    return kInvalidHandle;
  }
  auto* made = new Graph(*graph);
  executables[made] = made;
  *executable = made;
  return 0;
}
int cuGraphLaunch(void* executable, Stream* given) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cuGraphLaunch", given, &stream)) return failed;
  auto found = executables.find(executable);
  if (found == executables.end()) {
    misuse("cuGraphLaunch of a graph that was destroyed");
    return kInvalidHandle;
  }
  for (auto& node : found->second->nodes) stream->add(node);
  return 0;
}
int cuGraphExecDestroy(void* executable) {
  std::lock_guard lock(mutex);
  auto found = executables.find(executable);
  if (found == executables.end()) {
    misuse("cuGraphExecDestroy of a graph that was destroyed");
    return kInvalidHandle;
  }
  delete found->second;
  executables.erase(found);
  return 0;
}
int cuGraphDestroy(Graph* graph) {
  std::lock_guard lock(mutex);
  if (!graphs.erase(graph)) {
    misuse("cuGraphDestroy of a graph that was destroyed");
    return kInvalidHandle;
  }
  delete graph;
  return 0;
}

}  // extern "C"
