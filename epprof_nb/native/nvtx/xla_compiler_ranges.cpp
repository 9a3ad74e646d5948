#include "nvtx/xla_compiler_ranges.h"

#include <atomic>
#include <string_view>

#include "core/op_stack.h"
#include "core/string_table.h"
#include "nvtx/api.h"

namespace epprof::nvtx {
namespace {

bool is_xla(const Domain* domain) {
  static const uint32_t tsl = intern("TSL");
  return domain->name == tsl;
}

std::atomic<int> compilations{0};  // in progress

}  // namespace

bool is_of_compiler(const Domain* domain, const char* message) {
  if (!is_xla(domain) || !message) return false;
  std::string_view text = message;
  return text.rfind("Xla", 0) == 0 && text.rfind("XlaModule:", 0) != 0;
}

bool is_helping_compiler(const Domain* domain) {
  return compilations.load(std::memory_order_relaxed) > 0 && is_xla(domain) && !top_op();
}

}  // namespace epprof::nvtx

using epprof::nvtx::compilations;

extern "C" void epprof_xla_compiling(int change) {
  if (change) {
    compilations += change;
  } else {
    compilations = 0;
  }
}
