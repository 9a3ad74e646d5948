// PyTorch: the C functions that the Python module calls. _native.pyi documents them. The caller holds
// the GIL.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int ep_torch_observe(const char* library);
void ep_torch_enable(int on);

// The engine's functions: whether those are known that say the number of the next node and whether
// the calling thread is in a backward pass.
int ep_engine_open(const char* library);
int ep_engine_is_known(void);
uint64_t ep_next_number(void);
int ep_is_in_pass(void);
int ep_engine_check_node(const void* object, size_t size, uint64_t number, const uint64_t* edges,
                         size_t edge_count);
int ep_engine_reads_nodes(void);

// Calls of modules.
typedef struct {
  uint32_t name, forward, recompute, backward;  // of the op, and kinds of its calls
  int on_host;                                  // has parameters that are not on a GPU
} ep_module;

typedef struct {
  uint64_t op, outer;
} ep_module_call;

void ep_modules_record(int on);
void ep_modules_begin_thread(uint64_t number);
int ep_modules_on_host(void);  // whether such modules were called
uint32_t ep_module_add(const ep_module* module);
ep_module_call ep_module_begin(uint32_t module, uint64_t number, int in_pass);
void ep_module_end(ep_module_call call, uint64_t number);
// 0 outside of modules, UINT64_MAX if unknown. `lowest`: the number down to which that holds.
uint64_t ep_call_of_own_node(uint64_t number, uint64_t* lowest);

// Backward passes, by number.
uint64_t ep_pass_begin(uint32_t name, uint32_t kind, int follow, uint64_t* op);
void ep_pass_end(uint64_t pass, uint64_t op, uint64_t* nodes, uint64_t* unlinked);
int ep_runs_pass(void);
void ep_switch_calls(uint64_t pass, uint64_t call);

#ifdef __cplusplus
}
#endif
