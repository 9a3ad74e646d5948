// A stand-in for cuBLASLt: products on the host, as work of a stream. It is strict where the library
// would compute something else or read memory that is not there.
#include <math.h>
#include <string.h>

#include "state.h"

using namespace fake;

namespace {

constexpr int kInvalid = 7, kUnsupported = 15;  // cublasStatus_t
constexpr int kFloat = 0, kDouble = 1, kHalf = 2, kBrain = 14;
constexpr int kNotTransposed = 0;
constexpr int kDefaultEpilogue = 1, kBiasEpilogue = 4;
constexpr size_t kWorkspace = 512;
constexpr uint64_t kAlgorithm = 0x5eed;

struct Layout {
  int type;
  int64_t rows, columns, leading, step = 0;
  int32_t batch = 1;
};

struct Operation {
  int compute, scale, a = 0, b = 0, epilogue = kDefaultEpilogue;
  const void* bias = nullptr;
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t alignments[4] = {256, 256, 256, 256}, schemes = 0;
};

struct Result {
  uint64_t algorithm[8];
  size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

bool refuses;
std::vector<std::vector<int64_t>>& products = *new std::vector<std::vector<int64_t>>;

double from_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                : exponent     ? ldexp(1024 + fraction, exponent - 25)
                               : ldexp(fraction, -24);
  return bits >> 15 ? -size : size;
}
uint16_t to_half(double value) {
  auto sign = uint16_t(signbit(value) << 15);
  double size = fabs(value);
  if (isnan(size)) return sign | 0x7e00;
  if (size >= 65520) return sign | 0x7c00;
  int exponent = size > 0 && ilogb(size) > -14 ? ilogb(size) : -14;
  return uint16_t(sign | (int(nearbyint(ldexp(size, 10 - exponent))) + ((exponent + 14) << 10)));
}
// bfloat16, rounded to even; of finite numbers.
uint16_t to_brain(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
double get(const void* data, int type, int64_t i) {
  if (type == kDouble) return static_cast<const double*>(data)[i];
  if (type == kFloat) return double(static_cast<const float*>(data)[i]);
  uint16_t bits = static_cast<const uint16_t*>(data)[i];
  if (type == kHalf) return from_half(bits);
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return double(value);
}
void set(void* data, int type, int64_t i, double value) {
  if (type == kDouble) static_cast<double*>(data)[i] = value;
  else if (type == kFloat) static_cast<float*>(data)[i] = float(value);
  else static_cast<uint16_t*>(data)[i] = type == kHalf ? to_half(value) : to_brain(float(value));
}

template <typename Value>
int assign(Value& target, const void* value, size_t bytes) {
  if (bytes != sizeof target) return kInvalid;
  memcpy(&target, value, bytes);
  return 0;
}

bool fits(const Layout& layout, int64_t rows, int64_t columns) {
  return layout.rows == rows && layout.columns == columns && layout.leading >= rows;
}

}  // namespace

extern "C" {

void fake_lt_refuse(int refuse) { refuses = refuse != 0; }
// Copies the products so far: batch, rows, columns, depth, whether there is a bias, and a matrix, and
// the type to compute in.
size_t fake_lt_products(int64_t* numbers, size_t most) {
  std::lock_guard lock(mutex);
  for (size_t i = 0; i < products.size() && i < most; i++) {
    std::copy(products[i].begin(), products[i].end(), numbers + 7 * i);
  }
  return products.size();
}
void fake_lt_forget() {
  std::lock_guard lock(mutex);
  products.clear();
}

int cublasLtCreate(void** handle) {
  std::lock_guard lock(mutex);
  if (current.empty()) return kInvalid;
  *handle = current.back();
  return 0;
}
int cublasLtMatmulDescCreate(Operation** made, int compute, int scale) {
  *made = new Operation{compute, scale};
  return 0;
}
int cublasLtMatmulDescDestroy(Operation* operation) {
  delete operation;
  return 0;
}
int cublasLtMatmulDescSetAttribute(Operation* operation, int attribute, const void* value,
                                   size_t bytes) {
  switch (attribute) {
    case 3: return assign(operation->a, value, bytes);
    case 4: return assign(operation->b, value, bytes);
    case 7: return assign(operation->epilogue, value, bytes);
    case 8: return assign(operation->bias, value, bytes);
    default: return kInvalid;
  }
}
int cublasLtMatrixLayoutCreate(Layout** made, int type, uint64_t rows, uint64_t columns,
                               int64_t leading) {
  *made = new Layout{type, int64_t(rows), int64_t(columns), leading};
  return 0;
}
int cublasLtMatrixLayoutDestroy(Layout* layout) {
  delete layout;
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* value,
                                     size_t bytes) {
  switch (attribute) {
    case 5: return assign(layout->batch, value, bytes);
    case 6: return assign(layout->step, value, bytes);
    default: return kInvalid;
  }
}
int cublasLtMatmulPreferenceCreate(Preference** made) {
  *made = new Preference;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(Preference* preference) {
  delete preference;
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value,
                                         size_t bytes) {
  if (attribute == 1) return assign(preference->workspace, value, bytes);
  if (attribute == 3) return assign(preference->schemes, value, bytes);
  if (attribute < 5 || attribute > 8) return kInvalid;
  return assign(preference->alignments[attribute - 5], value, bytes);
}
int cublasLtMatmulAlgoGetHeuristic(void*, Operation* operation, Layout*, Layout*, Layout*,
                                   Layout* d, Preference* preference, int, Result* result,
                                   int* found) {
  *found = 0;
  bool has_bias = operation->epilogue == kBiasEpilogue;
  if (refuses) return kUnsupported;
  bool is_short = d->type == kHalf || d->type == kBrain;
  if (is_short && preference->schemes != 2) return kInvalid;
  if (has_bias && !operation->bias) return kInvalid;
  if (preference->workspace < kWorkspace) return kInvalid;
  *result = {{kAlgorithm}, kWorkspace, 0, 1, {}};
  *found = 1;
  return 0;
}
int cublasLtMatmul(void* handle, Operation* given, const void* alpha, const void* a, Layout* la,
                   const void* b, Layout* lb, const void* beta, const void* c, Layout* lc, void* d,
                   Layout* ld, const uint64_t* algorithm, void* workspace, size_t workspace_bytes,
                   Stream* stream_given) {
  std::lock_guard lock(mutex);
  Stream* stream = nullptr;
  if (int failed = usable("cublasLtMatmul", stream_given, &stream)) return failed;
  Operation operation = *given;
  Layout x = *la, y = *lb, z = *lc, target = *ld;
  bool turned_a = operation.a != kNotTransposed, turned_b = operation.b != kNotTransposed;
  int64_t rows = target.rows, columns = target.columns;
  int64_t depth = turned_a ? x.rows : x.columns;
  if (handle != stream->context || *algorithm != kAlgorithm || workspace_bytes != kWorkspace ||
      !fits(x, turned_a ? depth : rows, turned_a ? rows : depth) ||
      !fits(y, turned_b ? columns : depth, turned_b ? depth : columns) ||
      !fits(z, rows, columns) || !fits(target, rows, columns) || x.batch != target.batch ||
      y.batch != target.batch || z.batch != target.batch || x.type != y.type) {
    misuse("cublasLtMatmul of layouts that do not fit");
    return kInvalid;
  }
  bool wide = operation.scale == kDouble;
  double factor = get(alpha, wide ? kDouble : kFloat, 0);
  double kept = get(beta, wide ? kDouble : kFloat, 0);
  bool has_bias = operation.epilogue == kBiasEpilogue;
  std::vector<const void*> used{a, b, d, workspace};
  if (kept != 0) used.push_back(c);
  if (has_bias) used.push_back(operation.bias);
  for (const void* address : used) {
    Allocation* found = allocation_at(uintptr_t(address));
    if (!found || uintptr_t(address) % 16) {
      misuse("cublasLtMatmul uses memory that was freed, or is not aligned");
      return kInvalid;
    }
  }
  products.push_back({target.batch, columns, rows, depth, has_bias, kept != 0,
                      operation.compute});
  stream->add([=] {
    for (const void* address : used) set_open(uintptr_t(address), true);
    memset(workspace, 0xff, workspace_bytes);
    for (int64_t n = 0; n < target.batch; n++) {
      for (int64_t j = 0; j < columns; j++) {
        for (int64_t i = 0; i < rows; i++) {
          double sum = 0;
          for (int64_t k = 0; k < depth; k++) {
            int64_t left = turned_a ? k + i * x.leading : i + k * x.leading;
            int64_t right = turned_b ? j + k * y.leading : k + j * y.leading;
            double product =
                get(a, x.type, n * x.step + left) * get(b, y.type, n * y.step + right);
            sum = wide ? sum + product : double(float(sum + product));
          }
          sum *= factor;
          if (kept != 0) sum += kept * get(c, z.type, n * z.step + i + j * z.leading);
          if (has_bias) sum += get(operation.bias, target.type, i);
          set(d, target.type, n * target.step + i + j * target.leading, sum);
        }
      }
    }
    for (const void* address : used) set_open(uintptr_t(address), false);
  });
  return 0;
}

}  // extern "C"
