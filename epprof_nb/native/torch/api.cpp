// The C functions over the engine, the log of module calls and the backward passes of PyTorch.
#include "torch/api.h"

#include <algorithm>
#include <vector>

#include "core/op_stack.h"
#include "core/records.h"
#include "torch/backward.h"
#include "torch/engine.h"
#include "torch/node_stacks.h"

using namespace epprof;
using namespace epprof::torch;

namespace {

std::vector<epprof_module>& modules = *new std::vector<epprof_module>;  // of all recordings
bool records_modules = false;
bool called_on_host = false;

}  // namespace

extern "C" {

int epprof_engine_open(const char* library) { return open_engine(library); }
int epprof_engine_is_known(void) { return has_numbers(); }
uint64_t epprof_next_number(void) { return next_number(); }
int epprof_is_in_pass(void) { return current_task() != kNoTask; }

int epprof_engine_check_node(const void* object, size_t size, uint64_t number, const uint64_t* edges,
                         size_t edge_count) {
  return check_node(object, size, number, edges, edge_count);
}

int epprof_engine_reads_nodes(void) { return can_read_nodes(); }

void epprof_modules_record(int on) {
  forget_passes();
  records_modules = on != 0;
  called_on_host = false;
  on ? start_module_logs() : stop_module_logs();
  record_node_stacks(on != 0);
}

void epprof_modules_begin_thread(uint64_t number) { begin_module_log(number); }
int epprof_modules_on_host(void) { return called_on_host; }

uint32_t epprof_module_add(const epprof_module* module) {
  modules.push_back(*module);
  return uint32_t(modules.size() - 1);
}

epprof_module_call epprof_module_begin(uint32_t index, uint64_t number, int in_pass) {
  if (!records_modules) return {0, kUnknownCall};  // a call of an earlier recording
  const epprof_module& module = modules[index];
  called_on_host |= module.on_host != 0;
  uint64_t op = push_op(module.name, kFrameworkCall, in_pass ? module.recompute : module.forward,
                        nullptr, 0);
  return {op, begin_call({module.name, module.backward}, number, in_pass)};
}

void epprof_module_end(epprof_module_call call, uint64_t number) {
  if (call.outer != kUnknownCall) end_call(call.outer, number);
  if (call.op) pop_op(call.op);
}

uint64_t epprof_call_of_own_node(uint64_t number, uint64_t* lowest) {
  return call_of_own_node(number, lowest);
}

uint64_t epprof_pass_begin(uint32_t name, uint32_t kind, int follow, uint64_t* op) {
  return begin_pass(name, kind, follow != 0, op);
}

void epprof_pass_end(uint64_t pass, uint64_t op, uint64_t* nodes, uint64_t* unlinked) {
  PassCounts counts = end_pass(pass);
  *nodes = counts.nodes;
  *unlinked = counts.unlinked;
  if (op) pop_op(op);
}

int epprof_runs_pass(void) { return runs_pass(); }
void epprof_switch_calls(uint64_t pass, uint64_t call) { switch_calls(pass, call); }

epprof_columns* epprof_drain_node_stacks(void) { return drain_node_stacks(); }

}  // extern "C"
