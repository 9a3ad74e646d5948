// Fork safety: in the child, no mutex of the core is locked, and its state is reset.
#pragma once

#include <mutex>

namespace epprof {

// A mutex that the forking thread holds during a fork, so that the child finds it unlocked and its
// data consistent. It has no destructor, because it is only for static storage. A thread that holds
// one must not lock another one and must not call Python or CUPTI, so that it never waits for a
// thread that forks.
class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  friend struct ForkHandlers;
  std::mutex mutex_;
  ForkSafeMutex* next_;  // in the order in which a fork locks mutexes
};

using ForkLockGuard = std::lock_guard<ForkSafeMutex>;

// Makes `reset` run in the child of each fork, before any other code. Only for static storage.
class ResetInChild {
 public:
  explicit ResetInChild(void (*reset)());
  ResetInChild(const ResetInChild&) = delete;
  ResetInChild& operator=(const ResetInChild&) = delete;

 private:
  friend struct ForkHandlers;
  void (*reset_)();
  ResetInChild* next_;
};

}  // namespace epprof
