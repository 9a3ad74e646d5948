#include "core/cell_log.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "core/clock.h"
#include "core/fork.h"

namespace epprof {

std::atomic<ThreadState*> logged_thread{nullptr};

namespace {

struct TopChange {
  int64_t time;
  uint64_t op;  // 0: none
};

struct CpuSample {
  int64_t time, cpu;
};

// Short statements need dense samples. A long one is sampled in proportion to its age.
constexpr int64_t kShortestPauseNs = 50'000, kLongestPauseNs = 500'000, kAgePerPause = 4;

struct CellLog {
  SpscLog<TopChange> changes;  // written by the cell's thread
  SpscLog<CpuSample> samples;  // written by the sampler
  TopChange last{};            // end of the last call of take_cell_log
  std::atomic<bool> stop{false};
  std::thread sampler;
};

// Never destroyed, because another thread may still log at exit. A forked child gets a new log,
// because it has no sampler to join.
CellLog* cell_log = new CellLog;

ResetInChild reset_cells([] {
  logged_thread = nullptr;
  cell_log = new CellLog;
});

void sample(CellLog* log, ThreadState* cell) {
  uint64_t changes = 0;
  int64_t changed_at = 0;
  while (!log->stop.load(std::memory_order_relaxed)) {
    int64_t now = epprof_now_ns();
    int64_t cpu = thread_cpu_time(cell->tid);
    if (cpu < 0) return;  // the thread has ended
    if (CpuSample* record = log->samples.begin(launch_pool)) {
      *record = {now, cpu};
      log->samples.commit();
    }
    uint64_t seen = cell->stack_changes.load(std::memory_order_relaxed);
    if (seen != changes) changed_at = now;
    changes = seen;
    int64_t pause = std::clamp((now - changed_at) / kAgePerPause, kShortestPauseNs,
                               kLongestPauseNs);
    timespec span{0, long(pause)};
    nanosleep(&span, nullptr);
  }
}

}  // namespace

void start_cell_log() {
  stop_cell_log();
  ThreadState* cell = cell_thread.load();
  if (!cell) return;
  CellLog* log = cell_log;
  log->stop = false;
  // Block signals in the sampler, because Python's handlers belong to other threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    log->sampler = std::thread(sample, log, cell);
  } catch (const std::system_error&) {
    // If no thread can start, there are no samples, and no launch is attributed to the cell's ops.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  StackLockGuard stack_lock(cell);
  log->last = {epprof_now_ns(), cell->top_op.load()};
  logged_thread = cell;
}

void stop_cell_log() {
  CellLog* log = cell_log;
  ThreadState* cell = logged_thread.load();
  if (!cell) return;
  {
    StackLockGuard stack_lock(cell);
    logged_thread = nullptr;
  }
  log->stop = true;
  if (log->sampler.joinable()) log->sampler.join();
  log->changes.consume(launch_pool, [](const TopChange&) {});
  log->samples.consume(launch_pool, [](const CpuSample&) {});
  log->changes.lost = log->samples.lost = 0;
}

void log_cell_top(uint64_t op) {
  CellLog* log = cell_log;
  if (TopChange* record = log->changes.begin(launch_pool)) {
    *record = {epprof_now_ns(), op};
    log->changes.commit();
  }
}

Columns* take_cell_log(uint64_t* thread) {
  std::vector<int64_t> top_time, cpu_time, cpu;
  std::vector<uint64_t> top_op;
  auto add = [&](const TopChange& change) {
    top_time.push_back(change.time);
    top_op.push_back(change.op);
  };
  *thread = 0;
  CellLog* log = cell_log;
  if (ThreadState* cell = logged_thread.load()) {
    StackLockGuard stack_lock(cell);
    *thread = cell->tid;
    if (!log->changes.lost) add(log->last);
    log->changes.consume(launch_pool, add);
    log->last = {epprof_now_ns(), cell->top_op.load()};
    if (!log->changes.lost) add(log->last);
  }
  log->samples.consume(launch_pool, [&](const CpuSample& sample) {
    cpu_time.push_back(sample.time);
    cpu.push_back(sample.cpu);
  });
  auto* columns = new Columns;
  columns->add("top_ns", std::move(top_time));
  columns->add("top_op_id", std::move(top_op));
  columns->add("cpu_at_ns", std::move(cpu_time));
  columns->add("cpu_ns", std::move(cpu));
  return columns;
}

}  // namespace epprof
