#include "ort/run_observer.h"

#include <vector>

#include "core/op_stack.h"
#include "ort/node_events.h"

namespace epprof::ort {
namespace {

struct State {
  uint32_t session;
  bool is_running;
  uint64_t launch_calls;  // of the thread, at the start of the run
  ObservedRun run;
};

// A node may run another session, which is observed meanwhile.
thread_local std::vector<State> states;

State* observed(uint32_t session) {
  return !states.empty() && states.back().session == session ? &states.back() : nullptr;
}

}  // namespace

void observe_run(uint32_t session) { states.push_back({session, false, 0, {}}); }

ObservedRun take_run() {
  if (states.empty()) return {};
  // ONNX Runtime does not report the end of some runs that fail.
  run_ended(states.back().session);
  ObservedRun run = states.back().run;
  states.pop_back();
  return run;
}

void run_started(uint32_t session) {
  State* state = observed(session);
  ThreadState* t = state && !state->is_running ? this_thread() : nullptr;
  if (!t) return;
  state->is_running = true;
  state->launch_calls = t->launch_calls.load(std::memory_order_relaxed);
  t->launch_hash = t->function_hash = 0;
  if (!state->run.is_profiled) state->run.op = push_run_op(session);
}

void run_ended(uint32_t session) {
  State* state = observed(session);
  ThreadState* t = state && state->is_running ? this_thread() : nullptr;
  if (!t) return;
  state->is_running = false;
  state->run.launches = t->launch_calls.load(std::memory_order_relaxed) - state->launch_calls;
  state->run.launch_hash = t->launch_hash;
  state->run.function_hash = t->function_hash;
  if (!state->run.is_profiled && state->run.op) pop_op(state->run.op);
}

void set_profiled_run(uint32_t session, uint64_t op) {
  State* state = observed(session);
  if (!state || state->is_running) return;
  state->run.op = op;
  state->run.is_profiled = true;
}

void set_has_subgraphs(uint32_t session) {
  if (State* state = observed(session)) state->run.has_subgraphs = true;
}

}  // namespace epprof::ort
