#include "core/string_table.h"

#include <deque>
#include <unordered_map>

#include "core/fork.h"

namespace epprof {
namespace {

constexpr size_t kMaxStrings = 1 << 20;
constexpr const char* kOtherNames = "(other names)";  // stands for the names after these

struct StringTable {
  std::deque<std::string> strings{std::string(), kOtherNames};  // a deque keeps the views valid
  std::unordered_map<std::string_view, uint32_t> ids{{std::string_view(), 0}};
};

ForkSafeMutex mutex;
StringTable& table = *new StringTable;  // never destroyed: threads may outlive static destructors

}  // namespace

std::string_view intern(std::string_view text, uint32_t* id) {
  ForkLockGuard lock(mutex);
  auto found = table.ids.find(text);
  if (found == table.ids.end() && table.strings.size() >= kMaxStrings) {
    *id = 1;
    return table.strings[1];
  }
  if (found == table.ids.end()) {
    table.strings.emplace_back(text);
    found = table.ids.emplace(table.strings.back(), uint32_t(table.strings.size() - 1)).first;
  }
  *id = found->second;
  return found->first;
}

uint32_t intern(std::string_view text) {
  uint32_t id;
  intern(text, &id);
  return id;
}

std::vector<std::string> strings_from(uint32_t first) {
  ForkLockGuard lock(mutex);
  if (first >= table.strings.size()) return {};
  return {table.strings.begin() + first, table.strings.end()};
}

}  // namespace epprof
