#include "ep/cuda/graph.h"

#include <map>
#include <stdexcept>

namespace epprof::ep {
namespace {

// The streams on which a thread replays graphs, by device. ONNX Runtime's streams cannot be used,
// because another thread's run may be about to capture them.
class ThreadStreams {
 public:
  ~ThreadStreams() {
    if (is_forked()) return;
    for (auto [device, stream] : streams_) {
      try {
        CurrentDevice current(device);
        cuda.StreamDestroy(stream);
      } catch (const std::exception&) {  // the context and its streams are lost
      }
    }
  }

  CudaStream on(int device) {
    CudaStream& stream = streams_[device];
    if (!stream) check_cuda("cuStreamCreate", cuda.StreamCreate(&stream, kNonBlocking));
    return stream;
  }

 private:
  std::map<int, CudaStream> streams_;
};
thread_local ThreadStreams thread_streams;

}  // namespace

CudaStream stream_of_thread(int device) { return thread_streams.on(device); }

CudaGraph::~CudaGraph() {
  if (is_forked()) return;
  abandon();
  try {
    CurrentDevice current(device_);
    if (executable_) cuda.GraphExecDestroy(executable_);
    if (graph_) cuda.GraphDestroy(graph_);
  } catch (const std::exception&) {  // the context and its graphs are lost
  }
  // Replays are waited for. Work recorded by a failed capture may still run eagerly.
  arena_of(device_).end_graph(this, executable_ != nullptr);
}

void CudaGraph::use_memory(bool use) { arena_of(device_).allocate_for_graph(use ? this : nullptr); }

void CudaGraph::begin(CudaStream stream) {
  if (stream_) return;
  if (is_capturing(stream)) throw std::runtime_error("its stream is being captured already");
  arena_of(device_).begin_capture(stream);
  stream_ = stream;
  capturing_ = true;
}

bool CudaGraph::is_intact() const {
  int status = 0;
  return capturing_ && cuda.StreamIsCapturing(stream_, &status) == kSuccess &&
         status == kCaptureActive;
}

size_t CudaGraph::node_count() const {
  int status = 0;
  uint64_t id = 0;
  size_t last_count = 0, count = 0;
  CudaGraphHandle graph = nullptr;
  const CudaGraphNode* last = nullptr;
  if (cuda.StreamGetCaptureInfo(stream_, &status, &id, &graph, &last, &last_count) != kSuccess ||
      status != kCaptureActive || cuda.GraphGetNodes(graph, nullptr, &count) != kSuccess) {
    return 0;
  }
  return count;
}

std::string CudaGraph::end() {
  CurrentDevice current(device_);
  capturing_ = false;
  if (int failed = cuda.StreamEndCapture(stream_, &graph_)) {
    return cuda_error("cuStreamEndCapture", failed);
  }
  if (!graph_) return "cuStreamEndCapture returned no graph";
  if (int failed = cuda.GraphInstantiateWithFlags(&executable_, graph_, 0)) {
    return cuda_error("cuGraphInstantiate", failed);
  }
  return "";
}

void CudaGraph::abandon() noexcept {
  if (!capturing_) return;
  capturing_ = false;
  try {
    CurrentDevice current(device_);
    cuda.StreamEndCapture(stream_, &graph_);  // fails for an invalid capture, but ends it
  } catch (const std::exception&) {  // the context is lost
  }
}

void CudaGraph::launch() {
  CurrentDevice current(device_);
  CudaStream stream = external_ ? external_ : stream_of_thread(device_);
  if (executable_) check_cuda("cuGraphLaunch", cuda.GraphLaunch(executable_, stream));
  check_cuda("cuStreamSynchronize", cuda.StreamSynchronize(stream));
}

}  // namespace epprof::ep
