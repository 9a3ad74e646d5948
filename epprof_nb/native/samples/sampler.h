// A thread that samples the Python code that the threads of a recording run between API calls. It
// takes no GIL and stops no thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/thread_state.h"
#include "samples/code_reader.h"

namespace epprof {

struct Sample {
  int64_t time, interval;  // since the moment of the sample before, of any thread
  int64_t processor;       // processor time of the thread until then; -1: unknown
  int64_t core_wait;       // time that the thread has waited for a core until then; -1: unknown
  uint64_t tid;
  uint32_t stack;
};

struct SampleCounts {
  uint64_t exact = 0, outer = 0, inconsistent = 0, dropped = 0;
};

// The state of a thread at its last sample.
struct SampledThread {
  std::unique_ptr<FrameReader> frames;
  int64_t cpu_time = -1;  // at the last sample; the stack is the same until it grows
  uint32_t stack = kNoStack;
  int64_t next_search = 0;  // if the thread had no Python state
};

class Sampler {
 public:
  Sampler(void* (*first_thread)(void*), void* interpreter, uintptr_t code_type);

  bool prepare() { return memory_.prepare(); }
  uintptr_t find_thread(uint64_t tid) const;  // its state; 0 if it has none
  bool start();  // false: the system refuses to read memory
  void stop();
  void release();  // the memory of samples that were not taken
  void forget_worker() { worker_ = nullptr; }  // in a forked child, which has no such thread
  // The new samples; the counts begin at the start.
  std::vector<Sample> take(SampleCounts* counts);
  NewStacks take_stacks(uint64_t session);

 private:
  struct Worker {
    std::thread thread;
    std::mutex mutex;
    std::condition_variable wake;
    bool stops = false;
    // Only the thread uses these. A fork may interrupt a change of them.
    std::unordered_map<uint64_t, SampledThread> threads;
    std::vector<uint64_t> tids;
  };

  void run(Worker* worker);
  void sample_all(Worker* worker, int64_t began, int64_t now, int64_t interval);
  void sample(Worker* worker, uint64_t tid, int64_t now, int64_t interval);
  SampledThread& known_thread(Worker* worker, uint64_t tid, int64_t now);
  Reading read(FrameReader* frames, uint32_t* stack);
  uint32_t resolve(const std::vector<RemoteFrame>& frames, bool* is_exact,
                   bool only_known = false);
  void start_session(Worker* worker);

  void* (*first_thread_)(void*);
  void* interpreter_;
  MemoryReader memory_;
  CodeReader codes_;
  Worker* worker_ = nullptr;  // never freed in a child, where its thread does not exist

  // Guarded by the mutex in the source file, which a drain also takes.
  StackNodes nodes_;
  uint64_t session_ = 0;
  std::vector<Sample> samples_;
  SampleCounts counts_;
};

}  // namespace epprof
