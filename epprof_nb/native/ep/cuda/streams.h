// Streams of CUDA devices and the notifications between them, for ONNX Runtime.
#pragma once

#include "ep/cuda/driver.h"
#include "ep/runtime.h"

namespace epprof::ep {

// A new stream, or the user's stream (`external`).
SyncStreamImpl* make_cuda_stream(int device, CudaStream external);  // throws

}  // namespace epprof::ep
