// The open API calls of a thread, the innermost last. Only the thread changes them. A drain on any
// thread reads the innermost.
#pragma once

#include <atomic>
#include <cstdint>

namespace epprof {

struct OpenCall {
  uint64_t correlation;
  uint64_t op;
  int64_t start;
  uint32_t name;
  uint16_t flags;
  uint16_t domain;
  uint32_t stack;
};

class OpenCalls {
 public:
  static constexpr uint32_t kMax = 16;  // a runtime call makes one or two driver calls

  // Drops calls of an earlier session, whose ends were not reported. Returns false if too many are
  // open.
  bool push(uint64_t session, const OpenCall& call) {
    uint32_t depth = depth_.load(std::memory_order_relaxed);
    if (session_.load(std::memory_order_relaxed) != session) depth = 0;
    if (depth == kMax) return false;
    begin_change();
    calls_[depth].store(call);
    session_.store(session, std::memory_order_release);
    depth_.store(depth + 1, std::memory_order_release);
    end_change();
    return true;
  }

  // Ends the innermost call with this correlation id and name, and all calls in it. A runtime call
  // and its driver call have the same correlation id. Returns false if the begin was not seen,
  // because the call was in progress when the session started.
  bool pop(uint64_t session, uint64_t correlation, uint32_t name, OpenCall* call) {
    if (session_.load(std::memory_order_relaxed) != session) return false;
    for (uint32_t i = depth_.load(std::memory_order_relaxed); i-- > 0;) {
      *call = calls_[i].load();
      if (call->correlation != correlation || call->name != name) continue;
      begin_change();
      depth_.store(i, std::memory_order_release);
      end_change();
      return true;
    }
    return false;
  }

  // To call from any thread. Returns false if no call is open, or if the calls are being changed.
  bool innermost(uint64_t session, OpenCall* call) const {
    uint32_t version = version_.load(std::memory_order_acquire);
    uint32_t depth = depth_.load(std::memory_order_acquire);
    if (version % 2 || !depth || session_.load(std::memory_order_acquire) != session) return false;
    *call = calls_[depth - 1].load();
    return version_.load(std::memory_order_relaxed) == version;
  }

 private:
  struct Slot {
    std::atomic<uint64_t> correlation{0}, op{0}, start{0}, name_flags_domain{0};
    std::atomic<uint32_t> stack{0};

    void store(const OpenCall& c) {
      correlation.store(c.correlation, std::memory_order_release);
      op.store(c.op, std::memory_order_release);
      start.store(uint64_t(c.start), std::memory_order_release);
      name_flags_domain.store(uint64_t(c.name) << 32 | uint64_t(c.flags) << 16 | c.domain,
                              std::memory_order_release);
      stack.store(c.stack, std::memory_order_release);
    }
    OpenCall load() const {
      OpenCall c;
      c.correlation = correlation.load(std::memory_order_acquire);
      c.op = op.load(std::memory_order_acquire);
      c.start = int64_t(start.load(std::memory_order_acquire));
      uint64_t rest = name_flags_domain.load(std::memory_order_acquire);
      c.name = uint32_t(rest >> 32);
      c.flags = uint16_t(rest >> 16);
      c.domain = uint16_t(rest);
      c.stack = stack.load(std::memory_order_acquire);
      return c;
    }
  };

  // The version is odd during a change.
  void begin_change() {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void end_change() {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  std::atomic<uint32_t> version_{0}, depth_{0};
  std::atomic<uint64_t> session_{0};
  Slot calls_[kMax];
};

}  // namespace epprof
