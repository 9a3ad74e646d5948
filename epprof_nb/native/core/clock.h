// The clock of all timestamps: CLOCK_MONOTONIC, in nanoseconds.
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t epprof_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
