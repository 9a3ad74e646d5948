"""Element types in CUDA C++: numbers are read as float32, or as float64 for float64."""

from __future__ import annotations

TYPES = """
struct Half { unsigned short bits; };
__device__ float wide(Half x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ void write(Half* at, float x) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(at->bits) : "f"(x));
}
__device__ float wide(float x) { return x; }
__device__ void write(float* at, float x) { *at = x; }
__device__ double wide(double x) { return x; }
__device__ void write(double* at, double x) { *at = x; }
"""

_C_TYPES = {"float16": "Half", "float32": "float", "float64": "double"}


def preamble(dtype: str) -> str:
    """Return C++ in which ``T`` is a floating-point dtype and ``A`` the type to compute in."""
    wide = "double" if dtype == "float64" else "float"
    return f"{TYPES}\ntypedef {_C_TYPES[dtype]} T;\ntypedef {wide} A;\n"
