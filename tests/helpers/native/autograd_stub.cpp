// A stand-in for PyTorch's autograd engine, with nodes that a test makes.
#include <stdint.h>
#include <string.h>

#include <memory>
#include <thread>

struct Vector {
  void *begin = nullptr, *end = nullptr, *capacity = nullptr;
};

namespace torch::autograd {

// The places that epprof_nb_native's engine.cpp expects.
struct Node {
  char head[24];
  uint64_t number;
  char topology[16];
  uint64_t thread;
  char metadata[40];
  Vector edges;
  char tail[64];
};

thread_local std::shared_ptr<Node> current;
thread_local int task = -1;
uint64_t next_number = 0;

std::shared_ptr<Node> get_current_node() { return current; }
int get_current_graph_task_id() { return task; }

}  // namespace torch::autograd

namespace at {
namespace sequence_number {
uint64_t peek() { return torch::autograd::next_number; }
}  // namespace sequence_number
struct RecordFunction {
  static uint64_t currentThreadId();
};
uint64_t RecordFunction::currentThreadId() { return 1; }
}  // namespace at

namespace c10 {
bool gradients = true;
struct GradMode {
  static bool is_enabled();
};
bool GradMode::is_enabled() { return gradients; }
}  // namespace c10

// The table of functions of a type, with its description before it.
struct Type {
  const void* table;
  const char* name;
};
Type type_of_views{nullptr, "N5torch8autograd9generated14ExpandBackward0E"};
const void* table_of_views[] = {&type_of_views, nullptr};

using torch::autograd::Node;

extern "C" {

void stub_set_next(uint64_t number) { torch::autograd::next_number = number; }
void stub_enable_gradients(bool on) { c10::gradients = on; }

// The pointers of a reference to a node, which stays.
void stub_reference(uint64_t number, uint64_t out[2]) {
  auto* node = new std::shared_ptr<Node>(std::make_shared<Node>());
  (*node)->number = number;
  (*node)->thread = 1;
  uint64_t* pointers = reinterpret_cast<uint64_t*>(node);
  out[0] = pointers[0];
  out[1] = pointers[1];
}

// Runs nodes of a pass on a thread of its own, which makes a call in each of them. A bit of `views`
// for each says whether it is of an operator that returns a view.
void stub_run_nodes(const uint64_t* numbers, uint32_t count, uint64_t views,
                    void (*call)(uint32_t)) {
  std::thread([=] {
    torch::autograd::task = 5;
    for (uint32_t i = 0; i < count; i++) {
      auto node = std::make_shared<Node>();
      node->number = numbers[i];
      node->thread = 1;
      const void** table = views >> i & 1 ? table_of_views + 1 : nullptr;
      memcpy(node->head, &table, sizeof table);
      torch::autograd::current = node;
      auto kept = node;  // the engine has references, too
      call(1);
    }
    torch::autograd::current = nullptr;
  }).join();
}

}  // extern "C"
