#include "core/threads.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <vector>

namespace epprof {

std::atomic<ThreadState*> cell_thread{nullptr};
ChunkPool op_pool;
ChunkPool launch_pool;
std::atomic<uint64_t> epoch{1};
Limits limits;

namespace {

struct Registry {
  std::mutex mutex;
  std::vector<ThreadState*> threads;
  int64_t ended_launch_calls = 0;
};

Registry& registry() {
  static Registry* r = new Registry;  // never destroyed: threads outlive static destructors
  return *r;
}

thread_local ThreadState* current = nullptr;
thread_local bool locals_destroyed = false;

struct AtThreadEnd {
  bool armed = false;
  ~AtThreadEnd() {
    if (current) current->ended.store(true, std::memory_order_release);
    current = nullptr;
    locals_destroyed = true;
  }
};
thread_local AtThreadEnd at_thread_end;

ThreadState* create() {
  if (locals_destroyed) return nullptr;
  auto* t = new ThreadState;
  t->tid = uint64_t(syscall(SYS_gettid));
  t->stack = static_cast<Entry*>(calloc(kMaxDepth, sizeof(Entry)));  // pages are mapped on use
  if (!t->stack) {
    delete t;
    return nullptr;
  }
  Registry& r = registry();
  {
    std::lock_guard<std::mutex> lock(r.mutex);
    r.threads.push_back(t);
  }
  at_thread_end.armed = true;  // the access registers its destructor
  current = t;
  return t;
}

}  // namespace

ThreadState* this_thread() {
  ThreadState* t = current;
  return t ? t : create();
}

void for_each_thread(void (*each)(ThreadState*, void*), void* data) {
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  for (ThreadState* t : r.threads) each(t, data);
}

int64_t ended_launch_calls() {
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  return r.ended_launch_calls;
}

void free_ended_threads() {
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  auto keep = r.threads.begin();
  for (ThreadState* t : r.threads) {
    if (t->logs_flushed && t != cell_thread.load() && t->ops.empty() && t->launches.empty()) {
      t->ops.release_all(op_pool);
      t->launches.release_all(launch_pool);
      r.ended_launch_calls += int64_t(t->launch_calls.load());
      free(t->stack);
      delete t;
    } else {
      *keep++ = t;
    }
  }
  r.threads.erase(keep, r.threads.end());
}

void forget_threads_after_fork() {
  // Threads of the parent may have held the locks: abandon the old registry.
  Registry& r = registry();
  new (&r) Registry;
  current = nullptr;
}

}  // namespace epprof
