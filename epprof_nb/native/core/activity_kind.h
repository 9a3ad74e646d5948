// Kinds of activities: their numbers in columns `kind`, in the records of CUPTI that hold them, in
// ACTIVITY_KINDS of Python's schema and in the viewer.
#pragma once

#include <cstdint>

namespace epprof {

enum ActivityKind : uint8_t { kOther, kKernel, kMemcpy, kMemset, kSynchronization };

}  // namespace epprof
