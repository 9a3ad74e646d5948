#include "nvtx/xla.h"

#include <string_view>

#include "core/string_table.h"

namespace epprof::nvtx {
namespace {

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

}  // namespace

bool is_of_compiler(const Domain* domain, const char* message) {
  static const uint32_t tsl = intern("TSL");
  if (domain->name != tsl || !message) return false;
  return starts_with(message, "Xla") && !starts_with(message, "XlaModule:");
}

}  // namespace epprof::nvtx
