#include "ep/run_thread.h"

#include "ep/cuda/driver.h"
#include "ep/interpreter.h"
#include "ort/status.h"

namespace epprof::ep {
namespace {

constexpr uint32_t kNone = 0;

// A run inside a kernel replaces this. The remaining nodes make their stream current themselves.
thread_local uint32_t session_of_thread = kNone;

// CuPy assumes that the previous stream belongs to the current device.
void leave_stream() {
  int device = interpreter.device_of_kept_stream();
  if (device < 0) return;
  consume_status(as_status([&] {
    CurrentDevice current(device);
    interpreter.leave_kept_stream();
  }));
}

}  // namespace

void run_starts_on_thread(uint32_t session) {
  leave_stream();  // from a failed run
  session_of_thread = session;
}

void run_ends_on_thread() {
  leave_stream();
  session_of_thread = kNone;
}

bool is_thread_of_run(uint32_t session) {
  return session != kNone && session_of_thread == session;
}

}  // namespace epprof::ep

extern "C" void ep_leave_stream(void) { epprof::ep::run_ends_on_thread(); }
