// The Python frames of another thread, read while it runs.
//
// Memory around the frames that were found last is read in one call, which takes about a
// microsecond; frames elsewhere are followed one by one. The thread runs meanwhile. Frames that are
// neighbours are read at one moment, and tell whether they still call others. Callers elsewhere
// have to be at the same instructions in two readings, which are repeated. The functions are those
// of the first reading nevertheless: otherwise, quick ones would be seen too rarely. If these do not
// hold still, only the outer frames count, as if the calls in them belonged to the line that made
// them.
#pragma once

#include <vector>

#include "samples/memory_reader.h"
#include "stacks/walker.h"

namespace epprof {

struct RemoteFrame {
  uintptr_t at, code, previous, instruction;
  uint8_t owner;
  bool is_running;  // it calls no function, except by C code
  bool is_entry;    // C code called it, or it stands for such a call
  bool is_joined;   // it was read at one moment with its caller
};

enum class Reading {
  exact,
  outer,         // without the innermost frames, which changed too fast
  inconsistent,  // nothing is known of the thread
  no_frames,     // the thread runs no Python
  no_thread      // the thread state is another one's, or was freed
};

class FrameReader {
 public:
  FrameReader(const MemoryReader& memory, const epprof_frame_layout& layout, uintptr_t thread,
              uint64_t tid)
      : memory_(memory), layout_(layout), thread_(thread), tid_(tid) {}

  Reading read();

  // Of the last reading, the innermost first. They include those that sys._getframe does not show.
  const std::vector<RemoteFrame>& frames() const { return chosen_; }

 private:
  enum class Followed { whole, broken, no_thread };  // broken: a caller was lost

  Followed follow();
  bool read_ranges();
  bool read_frame(uintptr_t at, RemoteFrame* frame);
  const char* in_ranges(uintptr_t at);
  RemoteFrame decoded(uintptr_t at, const char* bytes) const;
  void plan(const std::vector<RemoteFrame>& frames);

  const MemoryReader& memory_;
  epprof_frame_layout layout_;
  uintptr_t thread_;
  uint64_t tid_;

  uintptr_t cframe_ = 0;             // as it was last
  std::vector<MemoryRange> ranges_;  // the thread state, then memory with frames
  std::vector<size_t> starts_;       // of each range in `bytes_`
  std::vector<char> bytes_;
  size_t fixed_ranges_ = 0;
  size_t last_range_ = 0;  // in which the last frame was

  uintptr_t current_ = 0;
  std::vector<RemoteFrame> frames_, before_, chosen_;
};

}  // namespace epprof
