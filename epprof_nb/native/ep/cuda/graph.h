// A graph of a CUDA device: the launches of one run on a stream, captured by the driver.
#pragma once

#include <string>

#include "ep/cuda/arena.h"
#include "ep/cuda/driver.h"

namespace epprof::ep {

// The thread that begins a capture also ends it. Device memory that this thread allocates between
// `use_memory(true)` and `use_memory(false)` belongs to the graph until it ends.
class CudaGraph {
 public:
  // `external`: the user's stream, on which the graph is replayed; null: our own.
  CudaGraph(int device, CudaStream external) : device_(device), external_(external) {}
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void use_memory(bool use);
  void begin(CudaStream);  // captures the stream, unless it already does; throws
  bool has_begun() const { return stream_ != nullptr; }
  bool is_intact() const;  // whether the capture continues
  size_t node_count() const;  // captured so far
  // Ends the capture. The graph can be launched if this returns no error message.
  std::string end();
  void abandon() noexcept;
  void launch();  // and waits for its end; throws

  int device() const { return device_; }
  CudaStream stream() const { return stream_; }  // that was captured

 private:
  const int device_;
  const CudaStream external_;
  CudaStream stream_ = nullptr;
  bool capturing_ = false;
  CudaGraphHandle graph_ = nullptr;
  CudaGraphExec executable_ = nullptr;
};

// A stream of this thread that is never captured. The device must be current; throws.
CudaStream stream_of_thread(int device);

}  // namespace epprof::ep
