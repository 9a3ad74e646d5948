// The observer execution provider.
#pragma once

#include <cstdint>

#include "ort/abi.h"

namespace epprof::ort {

// Also the name under which the library is registered for the observer.
constexpr const char* kObserverName = "EpprofObserver";

// The number of the session that ONNX Runtime is creating on this thread, for an execution provider
// that reports its events. 0: another provider of the session reports them.
uint32_t new_session();
// To call around the creation of a session on this thread. `end_session` returns its number; 0:
// none.
void begin_session();
uint32_t end_session();
EpFactory* observer_factory();

}  // namespace epprof::ort
