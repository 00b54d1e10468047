#include "simgpu/driver/caller.h"

#include <dlfcn.h>
#include <link.h>
#include <unwind.h>

namespace simgpu {
namespace {

struct Search {
  const link_map* own = nullptr;  // this library
  const link_map* found = nullptr;
  void* address = nullptr;  // in what was found
};

_Unwind_Reason_Code Look(_Unwind_Context* context, void* argument) {
  auto* search = static_cast<Search*>(argument);
  // The return address may already be the next function's; the call is before it.
  search->address = reinterpret_cast<void*>(_Unwind_GetIP(context) - 1);
  dl_find_object object = {};
  if (_dl_find_object(search->address, &object) != 0) return _URC_NO_REASON;
  if (search->own == nullptr) search->own = object.dlfo_link_map;  // the first frame is this library's
  if (object.dlfo_link_map == search->own) return _URC_NO_REASON;
  search->found = object.dlfo_link_map;
  return _URC_END_OF_STACK;
}

}  // namespace

std::string CallingObject() {
  Search search;
  _Unwind_Backtrace(Look, &search);
  if (search.found == nullptr) return "";
  std::string path = search.found->l_name;
  Dl_info info = {};
  if (path.empty() && dladdr(search.address, &info) != 0) path = info.dli_fname;  // the program
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace simgpu
