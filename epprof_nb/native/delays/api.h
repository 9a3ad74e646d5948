// Delays on streams of CUDA devices: kernels that spin and measure their own length.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct epprof_launched_stream {
  uint64_t id;
  int is_new;  // it was created since the recording began
  int exists;
  const uint32_t* correlations;  // of graph launches, and of its first other launches
  size_t correlation_count;
};

// Calls `each` for the streams of the last recording that followed them.
void epprof_each_launched_stream(void (*each)(const struct epprof_launched_stream*, void*),
                                 void* data);

// Loads the kernel into each context with a stream of `launched_streams`. Returns null or an error
// message for the caller to free.
char* epprof_delays_begin(void);
// Frees what was made, except the memory of delays that have not ended.
void epprof_delays_end(void);

enum epprof_delay_result {
  EPPROF_DELAYED,
  EPPROF_DELAY_CAPTURING,     // the stream is being captured
  EPPROF_DELAY_DESTROYED,     // the stream was destroyed
  EPPROF_DELAY_OTHER_THREAD,  // it is the default stream of another thread
  EPPROF_DELAY_TOO_MANY,      // delays that have not ended
  EPPROF_DELAY_FAILED,        // `*cuda_result` says why
};

// Launches a delay on a stream of `launched_streams`. 0: the kernel ends at once.
enum epprof_delay_result epprof_delays_launch(uint64_t stream, uint32_t tag, uint64_t length_ns,
                                              int* cuda_result);

// Waits for all work of the contexts. Returns null or an error message for the caller to free.
char* epprof_delays_wait(void);

// The delays that have ended since the last call, at most `room`.
size_t epprof_delays_take(uint32_t* tags, uint64_t* lengths, size_t room);

#ifdef __cplusplus
}
#endif
