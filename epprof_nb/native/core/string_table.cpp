#include "core/string_table.h"

#include <atomic>
#include <deque>
#include <unordered_map>

#include "core/fork.h"

namespace epprof {
namespace {

constexpr size_t kMaxStrings = 1 << 20;
constexpr const char* kOtherNames = "(other names)";  // replaces names beyond the bound

struct StringTable {
  std::deque<std::string> strings{std::string(), kOtherNames};  // a deque keeps the views valid
  std::unordered_map<std::string_view, uint32_t> ids{{std::string_view(), 0}};
};

ForkSafeMutex strings_mutex;
std::atomic<uint32_t> count{2};  // of `table`; readable without the lock
StringTable& table = *new StringTable;  // never destroyed: threads may outlive static destructors

}  // namespace

std::string_view intern(std::string_view text, uint32_t* id) {
  ForkLockGuard lock(strings_mutex);
  auto found = table.ids.find(text);
  if (found == table.ids.end() && table.strings.size() >= kMaxStrings) {
    *id = kOtherNamesId;
    return table.strings[kOtherNamesId];
  }
  if (found == table.ids.end()) {
    table.strings.emplace_back(text);
    found = table.ids.emplace(table.strings.back(), uint32_t(table.strings.size() - 1)).first;
    count.store(uint32_t(table.strings.size()), std::memory_order_release);
  }
  *id = found->second;
  return found->first;
}

uint32_t intern(std::string_view text) {
  uint32_t id;
  intern(text, &id);
  return id;
}

uint32_t string_count() { return count.load(std::memory_order_acquire); }

std::vector<std::string> strings_from(uint32_t first) {
  ForkLockGuard lock(strings_mutex);
  if (first >= table.strings.size()) return {};
  return {table.strings.begin() + first, table.strings.end()};
}

}  // namespace epprof
