#include "cupti/first_launch.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "core/fork.h"
#include "core/thread_state.h"
#include "cupti/library.h"

namespace epprof {
namespace {

constexpr uint32_t kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr int kRelaxed = 2;           // CU_STREAM_CAPTURE_MODE_RELAXED

struct Target {
  uint64_t context_id;  // a new context may have the address of an earlier one
  uint64_t byte;
  CUstream stream;
};

struct Targets {
  std::mutex mutex;
  std::vector<Target> all;

  Target* find(uint64_t context_id) {
    auto found = std::find_if(all.begin(), all.end(), [context_id](const Target& target) {
      return target.context_id == context_id;
    });
    return found == all.end() ? nullptr : &*found;
  }
};

Targets* targets = new Targets;
ResetInChild reset_targets([] { targets = new Targets; });

bool current_context_id(uint64_t* id) {
  CUcontext context = nullptr;
  return cupti.CtxGetId && cupti.CtxGetCurrent(&context) == 0 && context &&
         cupti.CtxGetId(context, id) == 0;
}

void make_target(uint64_t context_id) {
  Target target = {context_id, 0, nullptr};
  if (cupti.MemAlloc(&target.byte, 1) != 0) return;
  if (cupti.StreamCreate(&target.stream, kNonBlocking) == 0) {
    targets->all.push_back(target);
  } else {
    cupti.MemFree(target.byte);
  }
}

}  // namespace

void prepare_first_launch() {
  uint64_t id = 0;
  if (!current_context_id(&id)) return;
  std::lock_guard<std::mutex> lock(targets->mutex);
  int mode = kRelaxed;  // other modes forbid allocations while a stream is captured
  if (targets->find(id) || cupti.ThreadExchangeStreamCaptureMode(&mode) != 0) return;
  make_target(id);
  cupti.ThreadExchangeStreamCaptureMode(&mode);
}

bool make_first_launch() {
  uint64_t id = 0;
  ThreadState* t = this_thread();
  if (!t || !current_context_id(&id)) return false;
  std::lock_guard<std::mutex> lock(targets->mutex);
  const Target* target = targets->find(id);
  if (!target) return false;
  t->in_profiler = true;
  bool launched = cupti.MemsetD8Async(target->byte, 0, 1, target->stream) == 0;
  t->in_profiler = false;
  return launched;
}

}  // namespace epprof
