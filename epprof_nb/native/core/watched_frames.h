// Generator and coroutine frames of a thread with watched suspensions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace epprof {

void watch_frame(uint64_t frame);
bool is_watched(uint64_t frame);
void unwatch_frame(uint64_t frame);
size_t watched_frames();
void unwatch_all_frames();  // of all threads

}  // namespace epprof
