// PyTorch: the C functions that the Python module calls. _native.pyi documents them.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

int ep_torch_observe(const char* library);
void ep_torch_enable(int on);

#ifdef __cplusplus
}
#endif
