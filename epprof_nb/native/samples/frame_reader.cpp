#include "samples/frame_reader.h"

#include <algorithm>

namespace epprof {

namespace {

constexpr size_t kFrameBytes = 80;  // sizeof(_PyInterpreterFrame)
constexpr uintptr_t kNear = 1024;   // frames this near are read with the memory between them
constexpr uintptr_t kPage = 4096;
constexpr size_t kMaxRange = 1 << 16;
constexpr size_t kInnermost = 4;  // ranges that are read with memory for further frames
constexpr int kAttempts = 5;

bool is_unmoved(const RemoteFrame& frame, const RemoteFrame& before) {
  return frame.at == before.at && frame.code == before.code &&
         frame.previous == before.previous && frame.instruction == before.instruction;
}

// Number of frames, from the outermost, that called each other at one moment. The innermost of them
// may have continued.
size_t frames_of_one_moment(const std::vector<RemoteFrame>& frames,
                            const std::vector<RemoteFrame>& before) {
  size_t count = 1;
  for (; count < frames.size(); count++) {
    const RemoteFrame& frame = frames[frames.size() - 1 - count];
    const RemoteFrame& caller = frames[frames.size() - count];
    bool is_verified =
        count <= before.size() && is_unmoved(caller, before[before.size() - count]);
    bool is_joined = frame.is_joined && !frame.is_entry;
    if (!is_joined && !is_verified) break;
  }
  return count;
}

// Leaves out frames that had returned when their caller was read.
void drop_returned(std::vector<RemoteFrame>* frames) {
  for (size_t i = frames->size() - 1; i > 0; i--) {
    if ((*frames)[i].is_running && !(*frames)[i - 1].is_entry) {
      frames->erase(frames->begin(), frames->begin() + ptrdiff_t(i));
      return;
    }
  }
}

bool have_same_functions(const std::vector<RemoteFrame>& a, const std::vector<RemoteFrame>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const RemoteFrame& x, const RemoteFrame& y) { return x.code == y.code; });
}

}  // namespace

RemoteFrame FrameReader::decoded(uintptr_t at, const char* bytes) const {
  RemoteFrame frame{};
  frame.at = at;
  frame.code = at_offset<uintptr_t>(bytes, layout_.frame_code) & ~uintptr_t(layout_.code_tag_mask);
  frame.previous = at_offset<uintptr_t>(bytes, layout_.frame_previous);
  frame.instruction = at_offset<uintptr_t>(bytes, layout_.frame_instruction);
  frame.owner = at_offset<uint8_t>(bytes, layout_.frame_owner);
  frame.is_running =
      layout_.frame_stack_top && at_offset<int32_t>(bytes, layout_.frame_stack_top) < 0;
  frame.is_entry = layout_.frame_is_entry ? at_offset<uint8_t>(bytes, layout_.frame_is_entry) != 0
                                          : frame.owner >= layout_.owner_interpreter;
  return frame;
}

// Frames of one chunk of the interpreter's stack are neighbours, and are read faster together. All
// memory between two near ones, and on the page of one, is mapped.
void FrameReader::plan(const std::vector<RemoteFrame>& frames) {
  ranges_.clear();
  size_t first = layout_.thread_frame;
  ranges_.push_back({thread_ + first, layout_.thread_native_id + sizeof(uint64_t) - first});
  if (layout_.has_cframe) ranges_.push_back({cframe_ + layout_.cframe_frame, sizeof(uintptr_t)});
  fixed_ranges_ = ranges_.size();
  for (const RemoteFrame& frame : frames) {
    uintptr_t at = frame.at;
    if (ranges_.size() > fixed_ranges_) {
      MemoryRange& last = ranges_.back();
      uintptr_t begin = std::min(last.at, at);
      uintptr_t end = std::max(last.at + last.bytes, at + kFrameBytes);
      bool is_near = at + kNear > last.at && at < last.at + last.bytes + kNear;
      if (is_near && end - begin <= kMaxRange) {
        last = {begin, end - begin};
        continue;
      }
    }
    ranges_.push_back({at, kFrameBytes});
  }
  for (size_t i = fixed_ranges_; i < std::min(ranges_.size(), fixed_ranges_ + kInnermost); i++) {
    MemoryRange& range = ranges_[i];
    uintptr_t begin = std::max(range.at - kNear, range.at & ~(kPage - 1));
    uintptr_t end = range.at + range.bytes;
    end = std::min(end + kNear, (end + kPage - 1) & ~(kPage - 1));
    range = {begin, end - begin};
  }
  starts_.clear();
  size_t bytes = 0;
  for (const MemoryRange& range : ranges_) {
    starts_.push_back(bytes);
    bytes += range.bytes;
  }
  bytes_.resize(bytes);
}

bool FrameReader::read_ranges() {
  last_range_ = fixed_ranges_;
  return memory_.read(ranges_.data(), ranges_.size(), bytes_.data());
}

// The bytes of a frame, if they were read. The frames of a thread follow the order of the ranges.
const char* FrameReader::in_ranges(uintptr_t at) {
  size_t count = ranges_.size();
  for (size_t seen = fixed_ranges_, i = last_range_; seen < count; seen++, i++) {
    if (i >= count) i = fixed_ranges_;
    const MemoryRange& range = ranges_[i];
    // `at` may be any number.
    if (at >= range.at && at - range.at <= range.bytes - kFrameBytes) {
      last_range_ = i;
      return bytes_.data() + starts_[i] + (at - range.at);
    }
  }
  return nullptr;
}

FrameReader::Followed FrameReader::follow() {
  frames_.clear();
  if (ranges_.empty()) plan({});
  if (!read_ranges()) {  // memory was unmapped: begin anew
    if (layout_.has_cframe && !memory_.read(thread_ + layout_.thread_frame, &cframe_)) {
      return Followed::no_thread;
    }
    plan({});
    if (!read_ranges()) return Followed::no_thread;
  }
  size_t id = layout_.thread_native_id - layout_.thread_frame;
  if (at_offset<uint64_t>(bytes_.data(), id) != tid_) return Followed::no_thread;
  bool is_planned = true;
  uintptr_t at = at_offset<uintptr_t>(bytes_.data(), 0);
  if (layout_.has_cframe) {
    if (at == cframe_) {
      at = at_offset<uintptr_t>(bytes_.data(), starts_[1]);
    } else {
      cframe_ = at;
      is_planned = false;
      if (!memory_.read(cframe_ + layout_.cframe_frame, &at)) return Followed::broken;
    }
  }
  size_t range = SIZE_MAX;  // of the frame before
  while (at && frames_.size() < EPPROF_MAX_FRAMES) {
    const char* bytes = in_ranges(at);
    if (!frames_.empty()) {
      frames_.back().is_joined = layout_.frame_stack_top && bytes && last_range_ == range;
    }
    range = bytes ? last_range_ : SIZE_MAX;
    char one[kFrameBytes];
    if (!bytes) {
      if (!memory_.read(at, one, sizeof one)) return Followed::broken;
      bytes = one;
      is_planned = false;
    }
    frames_.push_back(decoded(at, bytes));
    at = frames_.back().previous;
  }
  if (!is_planned) plan(frames_);
  // A generator that has yielded has no caller.
  bool has_yielded = !at && !frames_.empty() && frames_.back().owner == layout_.owner_generator;
  if (has_yielded) return Followed::broken;
  if (!frames_.empty()) drop_returned(&frames_);
  return Followed::whole;
}

Reading FrameReader::read() {
  before_.clear();
  size_t kept = 0, empty = 0;
  for (int attempt = 0; attempt < kAttempts; attempt++) {
    Followed followed = follow();
    if (followed == Followed::no_thread) return Reading::no_thread;
    // The struct that leads to the frames may be freed already; then there seem to be none.
    empty += followed == Followed::whole && frames_.empty();
    if (followed != Followed::whole || frames_.empty()) continue;
    if (!before_.empty()) {
      size_t of_one_moment = frames_of_one_moment(frames_, before_);
      bool is_exact = of_one_moment == frames_.size();
      if (!kept || (is_exact && have_same_functions(frames_, chosen_))) {
        chosen_ = frames_;
        kept = of_one_moment;
        if (is_exact) return Reading::exact;
      }
    }
    before_.swap(frames_);
  }
  if (empty == kAttempts) return Reading::no_frames;
  if (!kept && !before_.empty()) {  // in generators that call each other, most links lead nowhere
    chosen_ = before_;
    kept = frames_of_one_moment(chosen_, {});
  }
  chosen_.erase(chosen_.begin(), chosen_.end() - ptrdiff_t(kept));
  return kept ? Reading::outer : Reading::inconsistent;
}

}  // namespace epprof
