// The C functions over graphs that the Python module calls.
#include "ep/api.h"
#include "ep/graphs/captured_graph.h"

using namespace epprof::ep;

struct ep_graph_run {
  GraphRun run;
};

extern "C" {

void ep_allow_capture(int allowed) { allow_capture(allowed != 0); }
int ep_is_replaying(void) { return is_replaying(); }
int ep_is_capturing(void) { return any_capture() != nullptr; }
int ep_capture_is_intact(void) {
  const GraphRun* run = any_capture();
  return run && (!run->graph->cuda || run->graph->cuda->is_intact());
}
void ep_report_violation(const char* what) { report_violation(what); }

uint64_t ep_begin_call(uint32_t session) { return begin_call(session); }

ep_graph_run* ep_begin_graph_run(uint32_t session, int64_t gpu_graph_id, ep_graph* graph,
                                 int warm_ups) {
  auto* made = new ep_graph_run{};
  made->run.session = session;
  made->run.gpu_graph_id = gpu_graph_id;
  made->run.warm_ups = warm_ups;
  if (graph) made->run.graph = graph->graph;
  begin_graph_run(&made->run);
  return made;
}

ep_graph_result ep_end_graph_run(ep_graph_run* ended) {
  GraphRun& run = ended->run;
  end_graph_run(&run);
  ep_graph_result result{};
  if (run.state == GraphRunState::captured) result.captured = new ep_graph{run.graph};
  result.replayed = run.replayed;
  if (!run.violation.empty()) {
    result.node = run.node.c_str();
    result.violation = run.violation.c_str();
  }
  return result;
}

void ep_release_graph_run(ep_graph_run* run) { delete run; }
void ep_release_graph(ep_graph* graph) { delete graph; }

void ep_changed_nodes(const ep_graph* graph, void (*each)(const char*, void*), void* data) {
  for (const auto& captured : graph->graph->calls) {
    if (!is_current(*captured)) each(captured->node.c_str(), data);
  }
}

void ep_set_captured_in(ep_graph* graph, const char* line) { graph->graph->captured_in = line; }

ep_graph_info ep_describe_graph(const ep_graph* graph) {
  const CapturedGraph& g = *graph->graph;
  return {g.id, g.gpu_graph_id, g.start, g.end, g.session, g.op, g.parent,
          g.captured_in.c_str()};
}

size_t ep_graph_node_count(const ep_graph* graph) { return graph->graph->calls.size(); }

ep_graph_node ep_graph_node_at(const ep_graph* graph, size_t index) {
  const CapturedCall& c = *graph->graph->calls[index];
  return {c.node.c_str(), c.op_type.c_str(), c.node_id, c.start,
          c.end,          c.node_index,      c.op,      c.device_nodes};
}

void ep_take_replays(void (*each)(uint64_t, int64_t, void*), void* data) {
  for (const RecordedReplay& replay : take_replays()) each(replay.op, replay.graph, data);
}

}  // extern "C"
