#include "ep/host/stream_worker.h"

#include <pthread.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "core/fork.h"

namespace epprof::ep {
namespace {

class Worker {
 public:
  Worker() : thread_([this] { serve(); }) {}

  ~Worker() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void submit(void (*task)(void*), void* argument) {
    std::lock_guard<std::mutex> lock(mutex_);
    task_ = task;
    argument_ = argument;
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !task_; });
  }

 private:
  void serve() {
    pthread_setname_np(pthread_self(), "epprof-stream");
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return task_ || ends_; });
      if (ends_) return;
      lock.unlock();
      task_(argument_);
      lock.lock();
      task_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  void (*task_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool ends_ = false;
  std::thread thread_;  // last, because it starts once the other members exist
};

thread_local std::unique_ptr<Worker> worker;
// A child has only the thread that forked. The worker exists only in the parent.
ResetInChild reset([] { static_cast<void>(worker.release()); });

}  // namespace

void submit_to_worker(void (*task)(void*), void* argument) {
  if (!worker) worker = std::make_unique<Worker>();
  worker->submit(task, argument);
}

void wait_for_worker() { worker->wait(); }

}  // namespace epprof::ep
