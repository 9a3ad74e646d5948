#include "core/threads.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

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
  int64_t ended_work_calls = 0;
};

Registry& registry() {
  static Registry* r = new Registry;  // outlives every thread
  return *r;
}

thread_local ThreadState* current = nullptr;
thread_local bool gone = false;

struct AtThreadEnd {
  bool armed = false;
  ~AtThreadEnd() {
    if (current) current->ended.store(true, std::memory_order_release);
    current = nullptr;
    gone = true;
  }
};
thread_local AtThreadEnd at_thread_end;

ThreadState* make() {
  if (gone) return nullptr;
  auto* t = new ThreadState;
  t->tid = uint64_t(syscall(SYS_gettid));
  t->stack = static_cast<Entry*>(calloc(kMaxDepth, sizeof(Entry)));  // pages come on use
  if (!t->stack) {
    delete t;
    return nullptr;
  }
  Registry& r = registry();
  {
    std::lock_guard<std::mutex> lock(r.mutex);
    r.threads.push_back(t);
  }
  at_thread_end.armed = true;  // touching it registers its destructor
  current = t;
  return t;
}

size_t hash(uint64_t parent, uint32_t key) {
  uint64_t h = (parent ^ (uint64_t(key) << 40 | key)) * 0x9E3779B97F4A7C15u;
  return size_t(h ^ (h >> 29));
}

}  // namespace

ThreadState* this_thread() {
  ThreadState* t = current;
  return t ? t : make();
}

void for_each_thread(void (*each)(ThreadState*, void*), void* data) {
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  for (ThreadState* t : r.threads) each(t, data);
}

int64_t ended_work_calls() {
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  return r.ended_work_calls;
}

void reap_threads() {
  Registry& r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  auto keep = r.threads.begin();
  for (ThreadState* t : r.threads) {
    if (t->ended_drained && t != cell_thread.load() && t->ops.empty() && t->launches.empty()) {
      t->ops.release_all(op_pool);
      t->launches.release_all(launch_pool);
      r.ended_work_calls += int64_t(t->work_calls.load());
      free(t->stack);
      delete t;
    } else {
      *keep++ = t;
    }
  }
  r.threads.erase(keep, r.threads.end());
}

void forget_threads_after_fork() {
  // Locks may have been held by threads that do not exist here: leave the old registry behind.
  Registry& r = registry();
  new (&r) Registry;
  current = nullptr;
}

uint32_t LineRows::search(uint64_t parent, uint32_t key) {
  if (rows.size() * 2 >= slots_.size()) rehash(std::max<size_t>(1024, slots_.size() * 2));
  size_t mask = slots_.size() - 1;
  for (size_t i = hash(parent, key) & mask;; i = (i + 1) & mask) {
    if (slots_[i] == 0) {
      LineRow row{};
      row.parent = parent;
      row.key = key;
      rows.push_back(row);
      slots_[i] = uint32_t(rows.size());
      return uint32_t(rows.size() - 1);
    }
    const LineRow& row = rows[slots_[i] - 1];
    if (row.parent == parent && row.key == key) return slots_[i] - 1;
  }
}

void LineRows::clear() {
  rows.clear();
  slots_.clear();
}

void LineRows::rehash(size_t slots) {
  slots_.assign(slots, 0);
  for (size_t r = 0; r < rows.size(); r++) {
    size_t i = hash(rows[r].parent, rows[r].key) & (slots - 1);
    while (slots_[i]) i = (i + 1) & (slots - 1);
    slots_[i] = uint32_t(r + 1);
  }
}

}  // namespace epprof
