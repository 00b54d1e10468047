// hotpack_save_plan of runtime/include/hotpack.h.
#include "preload/process/hook_scope.h"
#include "preload/serve/plan_store.h"
#include "runtime/include/hotpack.h"

extern "C" int hotpack_save_plan(const char* path) {
  hotpack::HookScope scope;
  return hotpack::SavePlans(path);
}
