// The observer execution provider.
#pragma once

#include <cstdint>

#include "ort/abi.h"

namespace epprof::ort {

uint32_t new_session_id();
EpFactory* observer_factory();

}  // namespace epprof::ort
