#include "core/fork.h"

#include <pthread.h>

namespace epprof {
namespace {

// Linked by the one thread that loads the library; constant afterwards.
ForkSafeMutex* mutexes = nullptr;
ResetInChild* resets = nullptr;

}  // namespace

struct ForkHandlers {
  static void prepare() {
    for (ForkSafeMutex* m = mutexes; m; m = m->next_) m->lock();
  }
  static void parent() {
    for (ForkSafeMutex* m = mutexes; m; m = m->next_) m->unlock();
  }
  static void child() {
    parent();
    for (ResetInChild* r = resets; r; r = r->next_) r->reset_();
  }
  ForkHandlers() { pthread_atfork(prepare, parent, child); }
};

namespace {
ForkHandlers handlers;
}

ForkSafeMutex::ForkSafeMutex() : next_(mutexes) { mutexes = this; }
ResetInChild::ResetInChild(void (*reset)()) : reset_(reset), next_(resets) { resets = this; }

}  // namespace epprof
