#include "core/string_table.h"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace epprof {
namespace {

struct StringTable {
  std::mutex mutex;
  std::deque<std::string> strings{std::string()};  // a deque keeps the views valid
  std::unordered_map<std::string_view, uint32_t> ids{{std::string_view(), 0}};
};

StringTable& table() {
  static auto* t = new StringTable;  // never destroyed: threads may outlive static destructors
  return *t;
}

}  // namespace

std::string_view intern(std::string_view text, uint32_t* id) {
  StringTable& t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  auto found = t.ids.find(text);
  if (found == t.ids.end()) {
    t.strings.emplace_back(text);
    found = t.ids.emplace(t.strings.back(), uint32_t(t.strings.size() - 1)).first;
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
  StringTable& t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  if (first >= t.strings.size()) return {};
  return {t.strings.begin() + first, t.strings.end()};
}

}  // namespace epprof
