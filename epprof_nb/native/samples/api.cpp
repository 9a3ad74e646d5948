#include "samples/api.h"

#include <unistd.h>

#include "core/fork.h"
#include "samples/sampler.h"

namespace epprof {
namespace {

Sampler* sampler = nullptr;  // never destroyed
bool ended = false;
constexpr const char* kRefused =
    "the system refuses process_vm_readv and /proc/self/mem for this process";

ResetInChild reset([] {
  if (sampler) sampler->forget_worker();
});

NewStacks take_stacks(uint64_t session) { return sampler->take_stacks(session); }

}  // namespace
}  // namespace epprof

using namespace epprof;

extern "C" {

const char* epprof_samples_prepare(void* (*first_thread)(void*), void* interpreter,
                                   const void* code_type, const void* this_thread) {
  if (!epprof_current_layout()->thread_native_id) {
    return "the threads of this version of Python are not known";
  }
  if (!first_thread || !interpreter || !code_type || !this_thread) {
    return "the interpreter lacks functions that lead to its threads";
  }
  if (!sampler) {
    sampler = new Sampler(first_thread, interpreter, reinterpret_cast<uintptr_t>(code_type));
  }
  if (!sampler->prepare()) return kRefused;
  if (sampler->find_thread(uint64_t(gettid())) != reinterpret_cast<uintptr_t>(this_thread)) {
    return "the interpreter's list of threads does not match its version";
  }
  take_sampled_stacks = take_stacks;
  return nullptr;
}

const char* epprof_samples_start(void) {
  return sampler && !ended && !sampler->start() ? kRefused : nullptr;
}

void epprof_samples_stop(void) {
  if (!sampler) return;
  sampler->stop();
  sampler->release();
}

void epprof_samples_end(void) {
  ended = true;
  if (sampler) sampler->stop();
}

epprof_columns* epprof_samples_drain(uint64_t counts[4]) {
  SampleCounts found;
  std::vector<Sample> samples;
  if (sampler) samples = sampler->take(&found);
  std::vector<int64_t> time, interval, processor, core_wait;
  std::vector<uint64_t> thread;
  std::vector<uint32_t> stack;
  for (const Sample& sample : samples) {
    time.push_back(sample.time);
    interval.push_back(sample.interval);
    processor.push_back(sample.processor);
    core_wait.push_back(sample.core_wait);
    thread.push_back(sample.tid);
    stack.push_back(sample.stack);
  }
  counts[0] = found.exact;
  counts[1] = found.outer;
  counts[2] = found.inconsistent;
  counts[3] = found.dropped;
  auto* columns = new Columns;
  columns->add("time", std::move(time));
  columns->add("interval", std::move(interval));
  columns->add("processor", std::move(processor));
  columns->add("core_wait", std::move(core_wait));
  columns->add("thread_id", std::move(thread));
  columns->add("stack_id", std::move(stack));
  return columns;
}

}  // extern "C"
