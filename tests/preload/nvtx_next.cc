// An NVTX injection library that was present before ours: it writes its calls to the file HOTPACK_TEST_NVTX_LOG.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

namespace {

void Log(const char* what, const char* text) {
  std::FILE* file = std::fopen(getenv("HOTPACK_TEST_NVTX_LOG"), "a");
  if (file == nullptr) return;
  std::fprintf(file, "%s %s\n", what, text);
  std::fclose(file);
}

int OnPush(const char* text) {
  Log("push", text);
  return 40;
}
int OnPop() {
  Log("pop", "");
  return 41;
}
nvtxRangeId_t OnStart(const char* text) {
  Log("start", text);
  return 77;
}
void OnEnd(nvtxRangeId_t id) { Log("end", id == 77 ? "77" : "another"); }
nvtxDomainHandle_t OnCreate(const char* name) {
  Log("domain", name);
  return reinterpret_cast<nvtxDomainHandle_t>(0x1000);
}
int OnDomainPush(nvtxDomainHandle_t domain, const nvtxEventAttributes_t*) {
  Log("domain push", domain == reinterpret_cast<nvtxDomainHandle_t>(0x1000) ? "ours" : "another");
  return 42;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable core = nullptr, core2 = nullptr;
  unsigned size = 0;
  callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &size);
  callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &size);
  *core[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(&OnPush);
  *core[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(&OnPop);
  *core[NVTX_CBID_CORE_RangeStartA] = reinterpret_cast<NvtxFunctionPointer>(&OnStart);
  *core[NVTX_CBID_CORE_RangeEnd] = reinterpret_cast<NvtxFunctionPointer>(&OnEnd);
  *core2[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(&OnCreate);
  *core2[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(&OnDomainPush);
  Log("initialized", "");
  return 1;
}
