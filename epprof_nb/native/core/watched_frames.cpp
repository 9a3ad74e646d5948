#include "core/watched_frames.h"

#include <atomic>
#include <unordered_set>

namespace epprof {
namespace {

std::atomic<uint64_t> generation{1};

struct Watched {
  uint64_t generation = 0;
  std::unordered_set<uint64_t> frames;
};

Watched& of_this_thread() {
  thread_local Watched watched;
  uint64_t now = generation.load(std::memory_order_relaxed);
  if (watched.generation != now) {
    watched.generation = now;
    watched.frames.clear();
  }
  return watched;
}

}  // namespace

void watch_frame(uint64_t frame) { of_this_thread().frames.insert(frame); }
bool is_watched(uint64_t frame) { return of_this_thread().frames.count(frame) != 0; }
void unwatch_frame(uint64_t frame) { of_this_thread().frames.erase(frame); }
size_t watched_frames() { return of_this_thread().frames.size(); }
void unwatch_all_frames() { generation++; }

}  // namespace epprof
