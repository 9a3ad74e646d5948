// What makes a fork safe: no mutex of the core is locked in the child, and its state is its own.
#pragma once

#include <mutex>

namespace epprof {

// A mutex that the forking thread holds during a fork, so that the child gets it unlocked and what
// it guards intact. Only for objects of static storage, which is why it has no destructor. A thread
// that holds one takes no other of them, calls neither Python nor CUPTI, and thus cannot wait for a
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
  ForkSafeMutex* next_;  // in the order in which a fork locks them
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
