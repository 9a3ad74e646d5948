// PyTorch: the C functions that the Python module calls. _native.pyi documents them. The caller holds
// the GIL.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/columns.h"

#ifdef __cplusplus
extern "C" {
#endif

int epprof_torch_observe(const char* library);
void epprof_torch_enable(int on);

// Opens the engine's functions. Returns whether it found the functions for the number of the next
// node and for the backward pass of the calling thread.
int epprof_engine_open(const char* library);
int epprof_engine_is_known(void);
uint64_t epprof_next_number(void);
int epprof_is_in_pass(void);
int epprof_engine_check_node(const void* object, size_t size, uint64_t number, const uint64_t* edges,
                         size_t edge_count);
int epprof_engine_reads_nodes(void);

// Calls of modules.
typedef struct {
  uint32_t name, forward, recompute, backward;  // name of the op, and kinds of its calls
  int on_host;                                  // whether it has parameters that are not on a GPU
} epprof_module;

typedef struct {
  uint64_t op, outer;
} epprof_module_call;

void epprof_modules_record(int on);
void epprof_modules_begin_thread(uint64_t number);
int epprof_modules_on_host(void);  // whether such modules were called
uint32_t epprof_module_add(const epprof_module* module);
epprof_module_call epprof_module_begin(uint32_t module, uint64_t number, int in_pass);
void epprof_module_end(epprof_module_call call, uint64_t number);
// 0 outside of modules, UINT64_MAX if unknown. `lowest`: the lowest number with the same result.
uint64_t epprof_call_of_own_node(uint64_t number, uint64_t* lowest);

// Backward passes, by number.
uint64_t epprof_pass_begin(uint32_t name, uint32_t kind, int follow, uint64_t* op);
void epprof_pass_end(uint64_t pass, uint64_t op, uint64_t* nodes, uint64_t* unlinked);
int epprof_runs_pass(void);
void epprof_switch_calls(uint64_t pass, uint64_t call);

// Stacks of backward passes; see node_stacks.h.
epprof_columns* epprof_drain_node_stacks(void);

#ifdef __cplusplus
}
#endif
