#include "simgpu/driver/caller.h"

#include <dlfcn.h>
#include <unwind.h>

namespace simgpu {
namespace {

struct Search {
  const void* own = nullptr;  // this library's base address
  const char* found = nullptr;
};

_Unwind_Reason_Code Look(_Unwind_Context* context, void* argument) {
  auto* search = static_cast<Search*>(argument);
  Dl_info info = {};
  // The return address may already be the next function's; the call is before it.
  const auto address = reinterpret_cast<void*>(_Unwind_GetIP(context) - 1);
  if (dladdr(address, &info) == 0) return _URC_NO_REASON;
  if (search->own == nullptr) search->own = info.dli_fbase;  // the first frame is this library's
  if (info.dli_fbase == search->own) return _URC_NO_REASON;
  search->found = info.dli_fname;
  return _URC_END_OF_STACK;
}

}  // namespace

std::string CallingObject() {
  Search search;
  _Unwind_Backtrace(Look, &search);
  if (search.found == nullptr) return "";
  const std::string path = search.found;
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace simgpu
