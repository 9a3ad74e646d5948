#include "samples/sampler.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/fork.h"
#include "core/launch_log.h"
#include "samples/sampling_interval.h"

namespace epprof {

namespace {

constexpr int64_t kSinceCall = 500'000;  // ns without an API call, before a thread is sampled
constexpr size_t kMaxSamples = 4'000'000;
constexpr int64_t kSearchAgain = 20'000'000;  // ns
constexpr int kTries = 30;  // of deep chains of generators, one reading in thirty is whole
constexpr int kMaxThreads = 4096;

ForkSafeMutex mutex;

// A sampler that waits for a core runs only when the sampled thread stops working. Newer systems
// soon run threads that request little time at once.
void ask_for_short_waits() {
  prctl(PR_SET_TIMERSLACK, 1000);
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } wanted{48, 0, 0, 0, 0, 100'000, 0, 0};  // sched_attr of SCHED_OTHER, ns
  syscall(SYS_sched_setattr, 0, &wanted, 0);
}

struct Wanted {
  std::vector<uint64_t>* tids;
  int64_t began, now;
};

void add_if_wanted(ThreadState* t, void* data) {
  auto& wanted = *static_cast<Wanted*>(data);
  int64_t last_call = t->last_call.load(std::memory_order_relaxed);
  bool takes_part = t == cell_thread.load() || last_call >= wanted.began ||
                    t->epoch.load(std::memory_order_relaxed) == epoch.load();
  OpenCall call;
  if (!takes_part || t->ended.load(std::memory_order_relaxed) ||
      t->is_own.load(std::memory_order_relaxed) ||
      wanted.now - last_call < kSinceCall || t->in_profiler.load(std::memory_order_relaxed) ||
      t->in_callback.load(std::memory_order_relaxed) ||
      t->open_calls.innermost(call_session.load(std::memory_order_relaxed), &call)) {
    return;
  }
  wanted.tids->push_back(t->tid);
}

}  // namespace

Sampler::Sampler(void* (*first_thread)(void*), void* interpreter, uintptr_t code_type)
    : first_thread_(first_thread),
      interpreter_(interpreter),
      codes_(memory_, *epprof_current_layout(), code_type) {}

// The list may change during the search, so the system's id identifies the state that was found.
uintptr_t Sampler::find_thread(uint64_t tid) const {
  const epprof_frame_layout& layout = *epprof_current_layout();
  auto thread = reinterpret_cast<uintptr_t>(first_thread_(interpreter_));
  for (int seen = 0; thread && seen < kMaxThreads; seen++) {
    uint64_t id;
    if (!memory_.read(thread + layout.thread_native_id, &id)) return 0;
    if (id == tid) return thread;
    if (!memory_.read(thread + layout.thread_next, &thread)) return 0;
  }
  return 0;
}

bool Sampler::start() {
  if (worker_) return true;
  if (!memory_.prepare()) return false;
  {
    ForkLockGuard lock(mutex);
    samples_.clear();
    counts_ = {};
  }
  worker_ = new Worker;
  sigset_t all, before;  // signals are for the threads of the program
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  worker_->thread = std::thread([this, worker = worker_] { run(worker); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return true;
}

void Sampler::stop() {
  if (!worker_) return;
  {
    std::lock_guard<std::mutex> lock(worker_->mutex);
    worker_->stops = true;
  }
  worker_->wake.notify_one();
  worker_->thread.join();
  delete worker_;
  worker_ = nullptr;
}

void Sampler::release() {
  ForkLockGuard lock(mutex);
  nodes_.clear();
  codes_.clear();
  samples_ = {};
  session_ = 0;
}

void Sampler::run(Worker* worker) {
  pthread_setname_np(pthread_self(), "epprof-sampler");
  ask_for_short_waits();
  int64_t began = epprof_now_ns(), before = began;
  VaryingInterval interval{uint64_t(began)};
  MeanInterval mean;
  std::unique_lock<std::mutex> lock(worker->mutex);
  for (;;) {
    int64_t wait = interval.around(mean.next());
    auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(wait);
    if (worker->wake.wait_until(lock, until, [&] { return worker->stops; })) return;
    int64_t now = epprof_now_ns();
    sample_all(worker, began, now, now - before);
    before = now;
  }
}

void Sampler::sample_all(Worker* worker, int64_t began, int64_t now, int64_t interval) {
  std::vector<uint64_t>& tids = worker->tids;
  tids.clear();
  Wanted wanted{&tids, began, now};
  for_each_thread(add_if_wanted, &wanted);
  // Most of them belong to threads that have ended.
  if (worker->threads.size() > 2 * tids.size() + 64) worker->threads.clear();
  for (uint64_t tid : tids) sample(worker, tid, now, interval);
}

void Sampler::sample(Worker* worker, uint64_t tid, int64_t now, int64_t interval) {
  SampledThread& known = known_thread(worker, tid, now);
  if (!known.frames) return;
  int64_t cpu_time = thread_cpu_time(tid), core_wait = thread_core_wait(tid);
  ForkLockGuard lock(mutex);
  start_session(worker);
  if (cpu_time < 0 || cpu_time != known.cpu_time || known.stack == kNoStack) {
    Reading reading = read(known.frames.get(), &known.stack);
    known.cpu_time = cpu_time;
    if (reading == Reading::no_thread) known.frames.reset();
    if (reading == Reading::no_thread || reading == Reading::no_frames) return;
    counts_.exact += reading == Reading::exact;
    counts_.outer += reading == Reading::outer;
    counts_.inconsistent += reading == Reading::inconsistent;
  } else {
    counts_.exact++;
  }
  if (known.stack == kNoStack) return;
  if (samples_.size() < kMaxSamples) {
    samples_.push_back({epprof_now_ns(), interval, cpu_time, core_wait, tid, known.stack});
  } else {
    counts_.dropped++;
  }
}

SampledThread& Sampler::known_thread(Worker* worker, uint64_t tid, int64_t now) {
  SampledThread& known = worker->threads[tid];
  if (!known.frames && now >= known.next_search) {
    uintptr_t thread = find_thread(tid);
    known.next_search = now + kSearchAgain;
    if (thread) {
      known.frames =
          std::make_unique<FrameReader>(memory_, *epprof_current_layout(), thread, tid);
    }
  }
  return known;
}

// Begins anew with each recording, because the numbers of stacks do.
void Sampler::start_session(Worker* worker) {
  uint64_t session = stack_counts.session.load(std::memory_order_relaxed);
  if (session_ == session) return;
  nodes_.clear();
  codes_.clear();
  for (auto& known : worker->threads) known.second.stack = kNoStack;
  session_ = session;
}

// A code object lives at least until its frames end. If no code object was freed meanwhile, the
// copies belong to the code objects that the frames executed.
Reading Sampler::read(FrameReader* frames, uint32_t* stack) {
  *stack = kNoStack;
  Reading reading = Reading::inconsistent;
  for (int i = 0; i < kTries && reading == Reading::inconsistent; i++) {
    uint64_t destroyed = epprof_destroyed_codes();
    reading = frames->read();
    if (reading != Reading::exact && reading != Reading::outer) continue;
    bool is_exact = reading == Reading::exact;
    codes_.keep();
    *stack = resolve(frames->frames(), &is_exact);
    if (destroyed != epprof_destroyed_codes()) {
      codes_.drop_new();
      *stack = kNoStack;
      // Code objects that were known before are still valid.
      if (i + 1 == kTries) *stack = resolve(frames->frames(), &is_exact, true);
    }
    if (!is_exact) reading = Reading::outer;
    if (*stack == kNoStack) reading = Reading::inconsistent;
  }
  return reading;
}

uint32_t Sampler::resolve(const std::vector<RemoteFrame>& frames, bool* is_exact,
                          bool only_known) {
  const epprof_frame_layout& layout = *epprof_current_layout();
  uint32_t stack = kNoStack;
  for (size_t i = frames.size(); i-- > 0;) {
    const RemoteFrame& frame = frames[i];
    if (frame.owner >= layout.owner_interpreter) continue;
    const KnownCode* code =
        only_known ? codes_.known(frame.code) : codes_.read(frame.code, &nodes_);
    // Another function may have reused a frame while it was read; then its instruction is outside
    // of the code. Before the first instruction, it points in front of the bytecode.
    bool is_read =
        code && frame.instruction < code->end && frame.instruction + 2 >= code->instructions;
    if (is_read && frame.owner != layout.owner_generator &&
        frame.instruction < code->first_shown) {
      continue;
    }
    uint32_t node = kNoStack;
    if (is_read) {
      node = nodes_.node(stack, code->copy, int32_t(frame.instruction - code->instructions));
    }
    if (node == kNoStack) {
      *is_exact = false;
      break;
    }
    stack = node;
  }
  return stack;
}

std::vector<Sample> Sampler::take(SampleCounts* counts) {
  ForkLockGuard lock(mutex);
  *counts = counts_;
  return std::exchange(samples_, {});
}

NewStacks Sampler::take_stacks(uint64_t session) {
  ForkLockGuard lock(mutex);
  return session_ == session ? nodes_.take() : NewStacks{};
}

}  // namespace epprof
