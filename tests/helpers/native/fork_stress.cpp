// Forks while other threads use the core. Each child uses it, too, and must end.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "core/api.h"
#include "ort/device_events.h"
#include "ort/interned_details.h"

using namespace epprof::ort;

namespace {

std::atomic<bool> stop{false};

void use(uint32_t thread, uint32_t turn) {
  uint32_t number = thread * 1000003 + turn;
  std::string name = "op " + std::to_string(number);
  uint64_t op = epprof_push(epprof_intern(name.data(), name.size()), 0, 0, nullptr, number | 1);
  intern_event_details({number, -1, intern_event_text(name + " event"), 0, 0, 0});
  add_device_event({number % 64, 1}, {kKernelEvent, name, 0, 1, 1, {}});
  int32_t parent = -1;
  if (turn % 16 == 0) epprof_begin_statement(epprof_add_statements(&parent, &number, 1));
  epprof_suspend(number | 1);
  epprof_resume(number | 1);
  epprof_pop(op);
  uint64_t lost;
  if (turn % 64 == 0) {
    epprof_columns_free(epprof_drain_ops(epprof_now_ns(), 1, &lost));
    epprof_columns_free(epprof_drain_launches(&lost));
  }
}

int child() {
  if (epprof_recording_ops()) return 2;  // the session is the parent's
  epprof_set_recording(1, 1);
  for (uint32_t turn = 0; turn < 200; turn++) use(99, turn);
  return 0;
}

}  // namespace

int main() {
  epprof_set_limits(32768, 32768, 100000, 1000, 1000000);
  epprof_set_recording(1, 1);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 3; i++) {
    threads.emplace_back([i] {
      for (uint32_t turn = 0; !stop; turn++) use(i, turn);
    });
  }
  int failed = 0;
  for (int fork_number = 0; fork_number < 50 && !failed; fork_number++) {
    usleep(1000);
    pid_t pid = fork();
    if (pid == 0) {
      alarm(20);
      _exit(child());
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (status != 0) {
      fprintf(stderr, "child %d ended with status %d\n", fork_number, status);
      failed = 1;
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return failed;
}
