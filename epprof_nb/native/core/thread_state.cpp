#include "core/thread_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <vector>

#include "core/fork.h"

namespace epprof {

std::atomic<uint32_t (*)(ThreadState*)> read_stack{nullptr};
std::atomic<ThreadState*> cell_thread{nullptr};
ChunkPool op_pool;
ChunkPool launch_pool;
std::atomic<uint64_t> epoch{1};
Limits limits;

namespace {

struct Registry {
  std::vector<ThreadState*> threads;
  int64_t ended_launch_calls = 0;
};

ForkSafeMutex threads_mutex;
Registry& registry = *new Registry;  // never destroyed: threads outlive static destructors

thread_local ThreadState* current = nullptr;
thread_local bool locals_destroyed = false;

struct AtThreadEnd {
  bool armed = false;
  ~AtThreadEnd() {
    if (current) {
      // /proc no longer has the name of an ended thread.
      prctl(PR_GET_NAME, current->name);
      current->ended.store(true, std::memory_order_release);
    }
    current = nullptr;
    locals_destroyed = true;
  }
};
thread_local AtThreadEnd at_thread_end;

// The parent's threads do not exist in the child, and their states may be inconsistent.
ResetInChild reset_threads([] {
  registry.threads.clear();
  registry.ended_launch_calls = 0;
  current = nullptr;
  cell_thread = nullptr;
  op_pool.forget_chunks();
  launch_pool.forget_chunks();
});

// Only the first thread can have a state already, which `first_thread` made for it.
ThreadState* found_or_new(uint64_t tid) {
  ForkLockGuard lock(threads_mutex);
  if (tid == uint64_t(getpid())) {
    for (ThreadState* t : registry.threads) {
      if (t->tid == tid) return t;
    }
  }
  auto* t = new ThreadState;
  t->tid = tid;
  t->stack = static_cast<Entry*>(calloc(kMaxDepth, sizeof(Entry)));  // pages are mapped on use
  if (!t->stack) {
    delete t;
    return nullptr;
  }
  registry.threads.push_back(t);
  return t;
}

ThreadState* create() {
  if (locals_destroyed) return nullptr;
  ThreadState* t = found_or_new(uint64_t(syscall(SYS_gettid)));
  if (!t) return nullptr;
  at_thread_end.armed = true;  // this access registers the destructor
  current = t;
  return t;
}

}  // namespace

ThreadState* this_thread() {
  ThreadState* t = current;
  return t ? t : create();
}

ThreadState* first_thread() { return found_or_new(uint64_t(getpid())); }

// From Linux's per-thread clock. See clock_getcpuclockid and the kernel's posix-timers.h
// (CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED).
int64_t thread_cpu_time(uint64_t tid) {
  struct timespec used;
  auto clock = clockid_t(~uint32_t(tid) << 3 | 4 | 2);
  if (clock_gettime(clock, &used) != 0) return -1;
  return int64_t(used.tv_sec) * 1000000000 + used.tv_nsec;
}

int64_t thread_core_wait(uint64_t tid) {
  char path[64], text[64];
  snprintf(path, sizeof path, "/proc/self/task/%llu/schedstat", (unsigned long long)tid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return -1;
  text[size] = 0;
  char* rest;
  strtoull(text, &rest, 10);  // the time on a core
  return *rest == ' ' ? int64_t(strtoull(rest, nullptr, 10)) : -1;
}

void for_each_thread(void (*each)(ThreadState*, void*), void* data) {
  ForkLockGuard lock(threads_mutex);
  for (ThreadState* t : registry.threads) each(t, data);
}

int64_t ended_launch_calls() {
  ForkLockGuard lock(threads_mutex);
  return registry.ended_launch_calls;
}

void free_ended_threads() {
  ForkLockGuard lock(threads_mutex);
  for (ThreadState* t : registry.threads) {
    if (t->reads_cell_thread.load()) return;  // maybe an ended one; the next drain frees it
  }
  auto keep = registry.threads.begin();
  for (ThreadState* t : registry.threads) {
    if (t->logs_flushed && t != cell_thread.load() && t->ops.empty() && t->launches.empty() &&
        t->node_usage.empty()) {
      t->ops.release_all(op_pool);
      t->launches.release_all(launch_pool);
      t->node_usage.release_all(op_pool);
      t->op_stacks.release_all(op_pool);
      registry.ended_launch_calls += int64_t(t->launch_calls.load());
      free(t->stack);
      delete t;
    } else {
      *keep++ = t;
    }
  }
  registry.threads.erase(keep, registry.threads.end());
}

}  // namespace epprof
