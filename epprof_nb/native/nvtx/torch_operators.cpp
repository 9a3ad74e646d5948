#include "nvtx/torch_operators.h"

#include <atomic>
#include <charconv>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/fork.h"
#include "core/op_stack.h"
#include "core/records.h"
#include "core/string_table.h"
#include "nvtx/api.h"

namespace epprof::nvtx {
namespace {

// The engine's range around a node, which also contains hooks. It gets no row, because a hook may
// open a module's op that ends after the range.
constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";
constexpr size_t kMaxSizes = 2000;            // characters of the sizes of one operator
constexpr size_t kMaxSizesTotal = 64u << 20;  // of all kept texts

std::atomic<bool> recording{false};
std::atomic<bool> paused{false};
std::atomic<uint64_t> seen{0};
std::atomic<uint64_t> own_thread{0};       // id of the thread that began the recording
std::atomic<uint64_t> backward_parent{0};  // of operators on other threads

ResetInChild reset([] { recording = false; });

// The sizes of all operators; equal sizes have the same id. 0: none, or beyond the bound.
struct SizesTable {
  std::deque<std::string> texts{std::string()};  // a deque keeps the views valid
  std::unordered_map<std::string_view, uint32_t> ids;
  size_t total = 0;
};

ForkSafeMutex sizes_mutex;
SizesTable& table = *new SizesTable;  // never destroyed: threads may outlive static destructors

std::string_view add_sizes(std::string_view text, uint32_t* id) {
  ForkLockGuard lock(sizes_mutex);
  auto found = table.ids.find(text);
  if (found == table.ids.end()) {
    if (table.total + text.size() > kMaxSizesTotal) {
      *id = 0;
      return {};
    }
    table.total += text.size();
    table.texts.emplace_back(text);
    found = table.ids.emplace(table.texts.back(), uint32_t(table.texts.size() - 1)).first;
  }
  *id = found->second;
  return found->first;
}

// A thread repeats its operators, so their ids are looked up without a lock.
using Ids = std::unordered_map<std::string_view, uint32_t>;

template <typename Add>
uint32_t id_of(Ids& ids, std::string_view text, Add add) {
  auto known = ids.find(text);
  if (known != ids.end()) return known->second;
  uint32_t id;
  std::string_view kept = add(text, &id);
  if (kept == text) ids.emplace(kept, id);
  return id;
}

uint32_t name_id(std::string_view name) {
  thread_local Ids ids;
  return id_of(ids, name, [](std::string_view text, uint32_t* id) { return intern(text, id); });
}

uint32_t sizes_id(std::string_view sizes) {
  thread_local Ids ids;
  if (sizes.empty()) return 0;
  return id_of(ids, sizes.substr(0, kMaxSizes), add_sizes);
}

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

uint64_t thread_id() {
  const ThreadState* t = this_thread();
  return t ? t->tid : 0;
}

// Reads a number at the start of `text` and removes it.
bool take_number(std::string_view* text, int64_t* number) {
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc()) return false;
  text->remove_prefix(size_t(end - text->data()));
  return true;
}

}  // namespace

bool parse_operator(std::string_view message, OperatorMessage* found) {
  constexpr std::string_view kId = ", op_id = ", kSequence = ", seq = ", kSizes = ", sizes = ",
                             kInputs = ", input_op_ids = ";
  size_t at = message.rfind(kId);
  if (at == std::string_view::npos || at == 0) return false;
  std::string_view head = message.substr(0, at), rest = message.substr(at + kId.size());
  int64_t id;
  if (!take_number(&rest, &id)) return false;
  *found = {head, kNoSequence, {}};
  size_t number_at = head.rfind(kSequence);
  if (number_at != std::string_view::npos) {
    std::string_view number = head.substr(number_at + kSequence.size());
    int64_t sequence;
    if (take_number(&number, &sequence) && number.empty()) {
      found->name = head.substr(0, number_at);
      found->sequence = sequence;
    }
  }
  if (starts_with(rest, kSizes)) {
    size_t end = rest.rfind(kInputs);
    found->sizes = rest.substr(kSizes.size(), end == std::string_view::npos ? end
                                                                            : end - kSizes.size());
    if (found->sizes == "[]") found->sizes = {};
    return true;
  }
  return rest.empty() || starts_with(rest, kInputs);
}

void record_operators(bool on) {
  own_thread = thread_id();
  paused = false;
  backward_parent = 0;
  recording = on;
}

bool are_operators_recorded() { return recording.load(std::memory_order_relaxed); }

bool open_operator(const char* message, uint64_t* op_id) {
  // The node whose engine range was the last message of this thread.
  thread_local std::string node;
  OperatorMessage parsed;
  if (!message || !parse_operator(message, &parsed)) return false;
  *op_id = 0;
  seen.fetch_add(1, std::memory_order_relaxed);
  if (paused.load(std::memory_order_relaxed)) return true;
  if (starts_with(parsed.name, kEngine)) {
    node = parsed.name.substr(kEngine.size());
    return true;
  }
  uint16_t category = kOperator;
  if (!node.empty() && parsed.name == node) {
    category = kAutogradNode;
    node.clear();
  }
  bool is_worker = thread_id() != own_thread.load(std::memory_order_relaxed);
  uint64_t parent = backward_parent.load(std::memory_order_relaxed);
  *op_id = push_operator(name_id(parsed.name), category, sizes_id(parsed.sizes), parsed.sequence,
                         parent, is_worker);
  return true;
}

}  // namespace epprof::nvtx

using namespace epprof;
using namespace epprof::nvtx;

extern "C" {

void epprof_operators_pause(int on) { paused = on != 0; }
void epprof_operators_backward(uint64_t parent) { backward_parent = parent; }
uint64_t epprof_operators_seen(void) { return seen; }

void epprof_operator_sizes(uint32_t first, void (*each)(const char*, size_t, void*), void* data) {
  std::vector<std::string> texts;
  {
    ForkLockGuard lock(sizes_mutex);
    if (first < table.texts.size()) texts.assign(table.texts.begin() + first, table.texts.end());
  }
  for (const std::string& text : texts) each(text.data(), text.size(), data);
}

}  // extern "C"
