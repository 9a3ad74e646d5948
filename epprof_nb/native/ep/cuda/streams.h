// Streams of CUDA devices and the notifications between them, as ONNX Runtime asks for them.
#pragma once

#include "ep/cuda/driver.h"
#include "ep/runtime.h"

namespace epprof::ep {

// A stream of its own, or one of the user's (`external`).
SyncStreamImpl* make_cuda_stream(int device, CudaStream external);  // throws

}  // namespace epprof::ep
