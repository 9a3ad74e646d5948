// The observer execution provider, which ONNX Runtime creates by CreateEpFactories.
#pragma once

#include <cstdint>

namespace epprof::ort {

uint32_t new_session_id();

}  // namespace epprof::ort
