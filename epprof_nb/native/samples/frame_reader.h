// The Python frames of another thread, read while it runs.
//
// One call reads the memory around the last frames, in about a microsecond; frames elsewhere are
// followed one by one. The thread runs meanwhile. Neighbouring frames are read at one moment, which
// shows whether they still call others. Callers elsewhere must be at the same instructions in two
// readings, which are repeated. The functions nevertheless come from the first reading, because
// later ones would rarely see quick functions. If the callers keep changing, only the outer frames
// count, and a call in them counts as the line that made it.
#pragma once

#include <vector>

#include "samples/memory_reader.h"
#include "stacks/walker.h"

namespace epprof {

struct RemoteFrame {
  uintptr_t at, code, previous, instruction;
  uint8_t owner;
  bool is_running;  // it calls no function, except by C code
  bool is_entry;    // C code called it, or it represents such a call
  bool is_joined;   // it was read at one moment with its caller
};

enum class Reading {
  exact,
  outer,         // without the innermost frames, which changed too fast
  inconsistent,  // the thread is unknown
  no_frames,     // the thread runs no Python
  no_thread      // the thread state belongs to another thread, or was freed
};

class FrameReader {
 public:
  FrameReader(const MemoryReader& memory, const epprof_frame_layout& layout, uintptr_t thread,
              uint64_t tid)
      : memory_(memory), layout_(layout), thread_(thread), tid_(tid) {}

  Reading read();

  // The frames of the last reading, the innermost first, including frames that sys._getframe hides.
  const std::vector<RemoteFrame>& frames() const { return chosen_; }

 private:
  enum class Followed { whole, broken, no_thread };  // broken: a caller was lost

  Followed follow();
  bool read_ranges();
  const char* in_ranges(uintptr_t at);
  RemoteFrame decoded(uintptr_t at, const char* bytes) const;
  void plan(const std::vector<RemoteFrame>& frames);

  const MemoryReader& memory_;
  epprof_frame_layout layout_;
  uintptr_t thread_;
  uint64_t tid_;

  uintptr_t cframe_ = 0;             // as of the last reading
  std::vector<MemoryRange> ranges_;  // the thread state, then memory with frames
  std::vector<size_t> starts_;       // of each range in `bytes_`
  std::vector<char> bytes_;
  size_t fixed_ranges_ = 0;
  size_t last_range_ = 0;  // in which the last frame was

  std::vector<RemoteFrame> frames_, before_, chosen_;
};

}  // namespace epprof
