#include "stacks/api.h"

#include <time.h>

#include "core/fork.h"
#include "core/launch_log.h"
#include "stacks/stack_table.h"

namespace epprof {
namespace {

epprof_interpreter python;
std::atomic<bool> ended{false};

// A walk reads the thread state, which the interpreter frees at its end, even while the thread is
// in a call of CUDA. Either the walk sees that stacks have ended, or `end` sees the walk.
class Walk {
 public:
  explicit Walk(ThreadState* t) : t_(t) {
    t->walks.exchange(true);
    may_ = !ended.load();
  }
  ~Walk() { t_->walks.store(false, std::memory_order_release); }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  // Null if the thread runs no Python, or if there are several interpreters: without the GIL, a
  // thread cannot find its state in the one that it runs.
  const void* thread_state() const {
    if (!may_ || python.newest_interpreter() != python.main_interpreter) return nullptr;
    return python.this_thread_state();
  }

 private:
  ThreadState* t_;
  bool may_;
};

uint32_t stack_of(ThreadState* t) {
  if (t->walks.load(std::memory_order_relaxed)) return kNoStack;  // in a signal handler
  Walk walk(t);
  if (!read_stack.load()) return kNoStack;  // either this sees the stop, or the stop sees the walk
  const void* thread = walk.thread_state();
  if (!thread) return kNoStack;
  return t->stacks.made<StackTable>().current(thread);
}

ResetInChild reset([] {
  read_stack = nullptr;
  stack_counts.session++;
});

bool any_walk() {
  bool found = false;
  for_each_thread(
      [](ThreadState* t, void* found) { *static_cast<bool*>(found) |= t->walks.load(); }, &found);
  return found;
}

void wait_for_walks() {
  const struct timespec pause{0, 20000};
  while (any_walk()) nanosleep(&pause, nullptr);
}

}  // namespace
}  // namespace epprof

using namespace epprof;

extern "C" {

const char* epprof_stacks_prepare(int minor, const epprof_interpreter* interpreter,
                                  const void* runtime) {
  const epprof_frame_layout* layout = epprof_frame_layout_of(minor);
  if (!layout || sizeof(void*) != 8) return "this version of Python is not known";
  if (!interpreter->this_thread_state || !interpreter->newest_interpreter ||
      !interpreter->main_interpreter) {
    return "the interpreter lacks functions that lead to its frames";
  }
  if (!epprof_layout_is_confirmed(layout, runtime)) {
    return "the interpreter's frames do not match its version";
  }
  epprof_set_frame_layout(layout);
  python = *interpreter;
  return nullptr;
}

void epprof_stacks_begin(void) {
  stack_counts.session++;
  stack_counts.nodes = stack_counts.codes = 0;
  stack_counts.truncated = stack_counts.dropped = 0;
}

void epprof_stacks_read(int on) { read_stack = on && !ended.load() ? stack_of : nullptr; }

void epprof_stacks_end(void) {
  read_stack = nullptr;
  ended = true;
  wait_for_walks();
}

void epprof_stacks_stop(void) {
  read_stack = nullptr;
  wait_for_walks();
  for_each_thread(
      [](ThreadState* t, void*) {
        if (auto* table = static_cast<StackTable*>(t->stacks.get())) table->release();
      },
      nullptr);
}

epprof_columns* epprof_stacks_drain(uint64_t counts[2]) {
  struct All {
    NewStacks stacks;
    uint64_t session = stack_counts.session;

    void add(NewStacks taken) {
      for (auto& node : taken.nodes) stacks.nodes.push_back(std::move(node));
      for (auto& code : taken.codes) stacks.codes.push_back(std::move(code));
    }
  } all;
  for_each_thread(
      [](ThreadState* t, void* data) {
        auto& all = *static_cast<All*>(data);
        auto* table = static_cast<StackTable*>(t->stacks.get());
        if (table) all.add(table->take(all.session));
      },
      &all);
  if (auto* take = take_sampled_stacks.load()) all.add(take(all.session));
  std::vector<uint32_t> id, parent, code, code_id, file_bytes, function_bytes;
  std::vector<int32_t> line, first_line;
  std::vector<char> files, functions;
  for (const StackNode& node : all.stacks.nodes) {
    const CodeCopy& c = *node.code;
    id.push_back(node.id);
    parent.push_back(node.parent);
    code.push_back(c.id);
    int32_t at = 0;  // also of a module's first instruction
    if (!c.line_table.empty()) {
      at = epprof_line_at(c.line_table.data(), c.line_table.size(), c.first_line, node.offset);
    }
    line.push_back(at ? at : c.first_line);
  }
  for (const auto& c : all.stacks.codes) {
    code_id.push_back(c->id);
    first_line.push_back(c->first_line);
    file_bytes.push_back(uint32_t(c->file.size()));
    function_bytes.push_back(uint32_t(c->function.size()));
    files.insert(files.end(), c->file.begin(), c->file.end());
    functions.insert(functions.end(), c->function.begin(), c->function.end());
  }
  counts[0] = stack_counts.truncated;
  counts[1] = stack_counts.dropped;
  auto* columns = new Columns;
  columns->add("stack_id", std::move(id));
  columns->add("parent_id", std::move(parent));
  columns->add("stack_code_id", std::move(code));
  columns->add("line", std::move(line));
  columns->add("code_id", std::move(code_id));
  columns->add("first_line", std::move(first_line));
  columns->add("file_bytes", std::move(file_bytes));
  columns->add("function_bytes", std::move(function_bytes));
  columns->add("files", std::move(files));
  columns->add("functions", std::move(functions));
  return columns;
}

void epprof_stacks_set_bound(uint64_t bytes) { stack_counts.max_bytes = size_t(bytes); }

size_t epprof_stacks_walk(epprof_frame out[EPPROF_MAX_FRAMES]) {
  ThreadState* t = this_thread();
  if (!t) return 0;
  Walk walk(t);
  const void* thread = walk.thread_state();
  int truncated;
  return thread ? epprof_copy_frames(thread, out, &truncated) : 0;
}

void epprof_stacks_stay(uint32_t shown) {
  ThreadState* t = read_stack.load() ? this_thread() : nullptr;
  if (!t) return;
  Walk walk(t);
  const void* thread = walk.thread_state();
  if (thread) t->stacks.made<StackTable>().base = epprof_find_base(thread, shown);
}

void epprof_stacks_leave(void) {
  ThreadState* t = this_thread();
  auto* table = t ? static_cast<StackTable*>(t->stacks.get()) : nullptr;
  if (table) table->base = {};
}

uint32_t epprof_stacks_current(void) {
  ThreadState* t = this_thread();
  auto* read = read_stack.load();
  return t && read ? read(t) : kNoStack;
}

}  // extern "C"
