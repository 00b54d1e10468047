// libhotpack_torch.so, as PyTorch calls it.
#include <dlfcn.h>

#include <functional>
#include <stdexcept>

#include "preload/torch/hotpack_torch.h"
#include "runtime/include/hotpack.h"
#include "tests/property/pool_contract_allocator.h"

namespace property {
namespace {

using Filter = std::function<bool(CUstream)>;

class HotpackTorch : public Allocator {
 public:
  bool Load() {
    void* library = dlopen("libhotpack_torch.so.0", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) return false;
    bool found = true;
    const auto find = [&](auto* function, const char* name) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(RTLD_DEFAULT, name));
      found = found && *function != nullptr;
    };
    decltype(&hotpack_torch_init) init = nullptr;
    find(&init, "hotpack_torch_init");
    find(&malloc_, "hotpack_torch_malloc");
    find(&free_, "hotpack_torch_free");
    find(&record_, "hotpack_torch_record_stream");
    find(&reset_, "hotpack_torch_reset");
    find(&begin_, "hotpack_torch_begin_allocate_to_pool");
    find(&end_, "hotpack_torch_end_allocate_to_pool");
    find(&release_, "hotpack_torch_release_pool");
    find(&step_, "hotpack_step");  // of the preloaded library, if there is one
    find(&wait_plan_, "hotpack_wait_plan");
    find(&save_plan_, "hotpack_save_plan");
    find(&get_stats_, "hotpack_get_stats");
    if (found) init(1);
    return found;
  }

  void* Malloc(size_t bytes, int device, CUstream stream) override try {
    return malloc_(static_cast<ssize_t>(bytes), device, stream);
  } catch (const std::runtime_error&) {
    return nullptr;
  }
  void Free(void* pointer, size_t bytes, int device, CUstream stream) override {
    free_(pointer, static_cast<ssize_t>(bytes), device, stream);
  }
  void RecordStream(void* pointer, int, CUstream stream) override { record_(pointer, stream); }
  void EmptyCache() override { reset_(); }
  void BeginPool(int device, PoolId id, CUstream stream) override {
    begin_(device, id, [stream](CUstream asked) { return asked == stream; });
  }
  void EndPool(int device, PoolId id) override { end_(device, id); }
  void ReleasePool(int device, PoolId id) override { release_(device, id); }
  bool PoolsUntold() const override { return true; }
  void Step() override { step_(); }
  void WaitForPlan() override { wait_plan_(2000); }
  void SavePlan() override { save_plan_(nullptr); }
  bool GetStats(hotpack_stats* stats) override { return get_stats_(stats, sizeof(*stats)) == 0; }

 private:
  decltype(&hotpack_torch_malloc) malloc_ = nullptr;
  decltype(&hotpack_torch_free) free_ = nullptr;
  decltype(&hotpack_torch_record_stream) record_ = nullptr;
  decltype(&hotpack_torch_reset) reset_ = nullptr;
  void (*begin_)(int, PoolId, Filter) = nullptr;
  void (*end_)(int, PoolId) = nullptr;
  void (*release_)(int, PoolId) = nullptr;
  decltype(&hotpack_step) step_ = nullptr;
  decltype(&hotpack_wait_plan) wait_plan_ = nullptr;
  decltype(&hotpack_save_plan) save_plan_ = nullptr;
  decltype(&hotpack_get_stats) get_stats_ = nullptr;
};

}  // namespace

std::unique_ptr<Allocator> MakeHotpack() {
  auto made = std::make_unique<HotpackTorch>();
  return made->Load() ? std::move(made) : nullptr;
}

}  // namespace property
