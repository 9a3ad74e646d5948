// The worker thread of a stream of the host device.
#pragma once

namespace epprof::ep {

// Gives `task(argument)` to the worker of the calling thread's stream. The caller must wait for it
// before the next task. The worker ends with the calling thread.
void submit_to_worker(void (*task)(void*), void* argument);
void wait_for_worker();

}  // namespace epprof::ep
