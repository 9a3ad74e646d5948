#include "core/string_table.h"

#include <deque>
#include <mutex>
#include <unordered_map>

namespace epprof {
namespace {

struct Table {
  std::mutex mutex;
  std::deque<std::string> names{std::string()};  // a deque: the views below stay valid
  std::unordered_map<std::string_view, uint32_t> ids{{std::string_view(), 0}};
};

Table& table() {
  static Table* t = new Table;  // never destroyed: threads may outlive static destructors
  return *t;
}

}  // namespace

std::string_view interned(std::string_view name, uint32_t* id) {
  Table& t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  auto found = t.ids.find(name);
  if (found == t.ids.end()) {
    t.names.emplace_back(name);
    found = t.ids.emplace(t.names.back(), uint32_t(t.names.size() - 1)).first;
  }
  *id = found->second;
  return found->first;
}

uint32_t intern(std::string_view name) {
  uint32_t id;
  interned(name, &id);
  return id;
}

std::vector<std::string> names_from(uint32_t first) {
  Table& t = table();
  std::lock_guard<std::mutex> lock(t.mutex);
  if (first >= t.names.size()) return {};
  return {t.names.begin() + first, t.names.end()};
}

}  // namespace epprof
