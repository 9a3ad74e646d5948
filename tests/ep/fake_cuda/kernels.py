"""Kernels in CUDA C++ for tests."""

SCALE = """
extern "C" __global__ void scale(const float* x, float* y, long long n, float factor) {
  for (long long i = blockIdx.x; i < n; i += gridDim.x) y[i] = x[i] * factor;
}
"""
