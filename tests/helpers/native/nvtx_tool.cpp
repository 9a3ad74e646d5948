// The injection library of another tool: it counts the copies of NVTX that ask.
static int asked;

extern "C" int InitializeInjectionNvtx2(const void* (*)(unsigned)) {
  asked++;
  return 1;
}
extern "C" int times_asked() { return asked; }
