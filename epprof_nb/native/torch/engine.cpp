#include "torch/engine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <type_traits>

namespace epprof::torch {
namespace {

// The result of torch::autograd::get_current_node. Because it has a destructor, the compiler passes
// the place of the result by address, as for PyTorch's type.
struct Reference {
  unsigned char* node = nullptr;
  unsigned char* control = nullptr;  // of std::shared_ptr
  ~Reference();
};

struct Functions {
  Reference (*current_node)() = nullptr;
  uint64_t (*next_number)() = nullptr;
  uint64_t (*thread_number)() = nullptr;
  int (*current_task)() = nullptr;
  bool (*gradients_enabled)() = nullptr;
} functions;

// Offsets in torch::autograd::Node, in bytes.
struct Layout {
  size_t reference_size;  // size of a pointer to a node, in its Python object and in edges
  size_t number, thread, edges, edge_size;
  bool counted_in_node;  // whether the node itself counts its references
};
constexpr Layout kShared{16, 24, 48, 96, 24, false};    // std::shared_ptr
constexpr Layout kIntrusive{8, 16, 40, 88, 16, true};  // c10::intrusive_ptr, in later releases
std::atomic<const Layout*> layout{nullptr};

template <typename T>
T at(const unsigned char* address, size_t offset) {
  T value;
  memcpy(&value, address + offset, sizeof value);
  return value;
}

// Releases the reference, unless it seems to be the last one, because the engine has others.
Reference::~Reference() {
  if (!node) return;
  const Layout* known = layout.load(std::memory_order_relaxed);
  auto* counter = reinterpret_cast<uint32_t*>((known->counted_in_node ? node : control) + 8);
  uint32_t count = __atomic_load_n(counter, __ATOMIC_RELAXED);
  while (count > 2 && !__atomic_compare_exchange_n(counter, &count, count - 1, true,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
}

// A copy of memory that may not be mapped.
class Memory {
 public:
  Memory() : file_(open("/proc/self/mem", O_RDONLY | O_CLOEXEC)) {}
  ~Memory() {
    if (file_ >= 0) close(file_);
  }
  bool read(const void* from, void* to, size_t size) const {
    return file_ >= 0 && pread(file_, to, size, off_t(uintptr_t(from))) == ssize_t(size);
  }

 private:
  int file_;
};

bool fits(const Layout& l, const Memory& memory, const unsigned char* node, uint64_t number,
          const uint64_t* edges, size_t edge_count) {
  unsigned char bytes[128];
  if (!memory.read(node, bytes, sizeof bytes)) return false;
  if (at<uint64_t>(bytes, l.number) != number) return false;
  if (at<uint64_t>(bytes, l.thread) != thread_number()) return false;
  auto* begin = at<const unsigned char*>(bytes, l.edges);
  auto* end = at<const unsigned char*>(bytes, l.edges + sizeof(void*));
  size_t size = size_t(end - begin), found = 0;
  if (end < begin || size % l.edge_size || size > 64 * l.edge_size) return false;
  for (; begin != end; begin += l.edge_size) {
    const unsigned char* next;
    if (!memory.read(begin, &next, sizeof next)) return false;
    if (!next) continue;
    uint64_t next_number;
    if (found == edge_count || !memory.read(next + l.number, &next_number, sizeof next_number) ||
        next_number != edges[found++]) {
      return false;
    }
  }
  return found == edge_count;
}

Node node_at(const Layout& l, const unsigned char* node) {
  return {node, at<uint64_t>(node, l.number), at<uint64_t>(node, l.thread)};
}

}  // namespace

bool can_read_nodes() { return layout.load(std::memory_order_relaxed) != nullptr; }

bool check_node(const void* object, size_t size, uint64_t number, const uint64_t* edges,
                size_t edge_count) {
  if (!functions.current_node || !functions.thread_number || !functions.current_task) return false;
  const Memory memory;
  for (const Layout* l : {&kShared, &kIntrusive}) {
    if (size != l->reference_size) continue;
    unsigned char* reference[2] = {};
    memcpy(reference, object, size);
    uint32_t count = 0;
    unsigned char* counted = l->counted_in_node ? reference[0] : reference[1];
    if (!memory.read(counted + 8, &count, sizeof count) || count == 0 || count > 100) continue;
    if (!fits(*l, memory, reference[0], number, edges, edge_count)) continue;
    layout = l;
    return true;
  }
  layout = nullptr;
  return false;
}

bool current_node(Node* node) {
  Reference reference = functions.current_node();
  if (!reference.node) return false;
  *node = node_at(*layout.load(std::memory_order_relaxed), reference.node);
  return true;
}

// Operators that PyTorch's tools/autograd/gen_inplace_or_view_type.py lists as views, and
// _unsafe_view. A node is named after its operator.
bool is_of_view(const Node& node) {
  static constexpr std::string_view kViews[] = {
      "Alias", "AsStrided", "Conj", "Detach", "Diagonal", "Expand", "LiftFresh", "NegView",
      "Permute", "ReshapeAlias", "Select", "Slice", "Split", "SplitWithSizes", "Squeeze", "T",
      "Transpose", "Unbind", "Unfold", "UnsafeSplit", "UnsafeSplitWithSizes", "UnsafeView",
      "Unsqueeze", "View", "ViewAsComplex", "ViewAsReal",
  };
  // The name of its type, by the ABI of C++: "N5torch8autograd9generated13SliceBackward0E".
  auto* table = at<const unsigned char*>(node.address, 0);
  if (!table) return false;
  struct Type {
    const void* table;
    const char* name;
  };
  const Type* type;
  memcpy(&type, table - sizeof type, sizeof type);
  if (!type || !type->name) return false;
  std::string_view name = type->name;
  size_t digits = name.rfind("generated");
  if (digits == name.npos) return false;
  name.remove_prefix(digits + strlen("generated"));
  name.remove_prefix(std::min(name.find_first_not_of("0123456789"), name.size()));
  name = name.substr(0, name.find("Backward"));
  return std::find(std::begin(kViews), std::end(kViews), name) != std::end(kViews);
}

bool next_node(const unsigned char* node, size_t edge, Node* next) {
  const Layout& l = *layout.load(std::memory_order_relaxed);
  auto* edges = at<const unsigned char*>(node, l.edges);
  auto* found = at<const unsigned char*>(edges, edge * l.edge_size);
  if (!found) return false;
  *next = node_at(l, found);
  return true;
}

size_t edge_count(const unsigned char* node) {
  const Layout& l = *layout.load(std::memory_order_relaxed);
  auto* begin = at<const unsigned char*>(node, l.edges);
  auto* end = at<const unsigned char*>(node, l.edges + sizeof(void*));
  return size_t(end - begin) / l.edge_size;
}

bool open_engine(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (!handle) return false;
  auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(handle, name));
  };
  find("_ZN5torch8autograd16get_current_nodeEv", functions.current_node);
  find("_ZN2at15sequence_number4peekEv", functions.next_number);
  find("_ZN2at14RecordFunction15currentThreadIdEv", functions.thread_number);
  find("_ZN5torch8autograd25get_current_graph_task_idEv", functions.current_task);
  find("_ZN3c108GradMode10is_enabledEv", functions.gradients_enabled);
  dlclose(handle);
  return has_numbers();
}

bool has_numbers() { return functions.next_number && functions.current_task; }

uint64_t next_number() { return functions.next_number(); }

uint64_t thread_number() { return functions.thread_number ? functions.thread_number() : 0; }

bool gradients_enabled() { return !functions.gradients_enabled || functions.gradients_enabled(); }

uint64_t current_task() {
  int task = functions.current_task ? functions.current_task() : -1;
  return task < 0 ? kNoTask : uint64_t(task);
}

}  // namespace epprof::torch
