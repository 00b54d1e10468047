#include "preload/streams/graph_memory.h"

#include <algorithm>
#include <memory>
#include <new>

#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"

namespace hotpack {
namespace {

uint64_t ThisThread() { return reinterpret_cast<uint64_t>(&hook_depth); }

}  // namespace

constinit GraphMemory process_graph_memory;

void GraphMemory::Begin(CUcontext context, uint64_t stream) {
  auto holder = std::make_unique<Holder>();
  holder->owner = this;
  holder->context = context;
  holder->thread = ThisThread();
  holder->stream = stream;
  std::lock_guard<std::mutex> lock(mutex_);
  if (capturing_ == nullptr) capturing_ = new std::vector<Holder*>;
  capturing_->push_back(holder.get());
  (void)holder.release();
  active_.fetch_add(1, std::memory_order_relaxed);
}

void GraphMemory::NoteAllocated(ContextArena* arena, DeviceAddress address) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (capturing_ == nullptr || capturing_->empty()) return;
  const auto own = std::find_if(capturing_->rbegin(), capturing_->rend(),
                                [thread = ThisThread()](const Holder* one) { return one->thread == thread; });
  Kept kept;
  if (own != capturing_->rend()) {
    kept.holders.push_back(*own);
  } else {
    kept.holders = *capturing_;
  }
  for (Holder* holder : kept.holders) holder->blocks.push_back({arena, address});
  if (kept_ == nullptr) kept_ = new std::unordered_map<DeviceAddress, Kept>;
  (*kept_)[address] = std::move(kept);
  count_.store(kept_->size(), std::memory_order_release);
}

// Takes the matching capture out of the active ones; null if there is none.
template <typename Matches>
GraphMemory::Holder* GraphMemory::TakeCapture(Matches matches) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (capturing_ == nullptr) return nullptr;
  const auto found = std::find_if(capturing_->begin(), capturing_->end(), matches);
  if (found == capturing_->end()) return nullptr;
  Holder* holder = *found;
  capturing_->erase(found);
  active_.fetch_sub(1, std::memory_order_relaxed);
  return holder;
}

void GraphMemory::End(CUcontext context, uint64_t stream, CUgraph graph) {
  Holder* holder = TakeCapture(
      [=](const Holder* one) { return one->stream == stream && (context == nullptr || one->context == context); });
  if (holder == nullptr) return;
  const CudaDriver* driver = Driver();
  const bool can_keep = !holder->blocks.empty() && graph != nullptr && driver != nullptr &&
                        driver->UserObjectCreate != nullptr && driver->GraphRetainUserObject != nullptr;
  CUuserObject object = nullptr;
  if (can_keep &&
      driver->UserObjectCreate(&object, holder, GraphIsGone, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) == CUDA_SUCCESS) {
    if (driver->GraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE) == CUDA_SUCCESS) return;
    // The object is still hotpack's. Releasing the reference ends it, and with it the holder.
    if (driver->UserObjectRelease != nullptr && driver->UserObjectRelease(object, 1) == CUDA_SUCCESS) return;
  }
  Free(holder);
}

bool GraphMemory::KeepForGraph(DeviceAddress address, bool* again) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (kept_ == nullptr) return false;
  const auto found = kept_->find(address);
  if (found == kept_->end()) return false;
  *again = found->second.released;
  found->second.released = true;
  return true;
}

// Gives back the blocks that the program has released. The others go back at their release.
void GraphMemory::Free(Holder* holder) {
  const std::unique_ptr<Holder> owned(holder);
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Block& block : holder->blocks) {
    const auto found = kept_ != nullptr ? kept_->find(block.address) : decltype(kept_->find(0)){};
    if (kept_ == nullptr || found == kept_->end()) continue;
    std::vector<Holder*>& holders = found->second.holders;
    if (std::erase(holders, holder) == 0 || !holders.empty()) continue;  // held by other graphs, or also by others
    if (found->second.released) {
      if (freed_ == nullptr) freed_ = new std::vector<Block>;
      freed_->push_back(block);
      freed_count_.store(freed_->size(), std::memory_order_release);
    }
    kept_->erase(found);
  }
  if (kept_ != nullptr) count_.store(kept_->size(), std::memory_order_release);
}

// Runs on a thread of the driver, or within the call that released the last reference. Driver calls are not allowed
// here (cuda.h, cuUserObjectCreate).
void CUDA_CB GraphMemory::GraphIsGone(void* data) {
  auto* holder = static_cast<Holder*>(data);
  try {
    holder->owner->Free(holder);
  } catch (...) {  // out of host memory: the blocks stay kept
  }
}

std::vector<GraphMemory::Block> GraphMemory::TakeFreed() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Block> freed;
  if (freed_ != nullptr) freed.swap(*freed_);
  freed_count_.store(0, std::memory_order_release);
  return freed;
}

void GraphMemory::ForgetContext(CUcontext context, const ContextArena* arena) {
  while (Holder* holder = TakeCapture([context](const Holder* one) { return one->context == context; })) Free(holder);
  if (arena == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  if (freed_ != nullptr) {
    std::erase_if(*freed_, [arena](const Block& block) { return block.arena == arena; });
    freed_count_.store(freed_->size(), std::memory_order_release);
  }
  if (kept_ == nullptr) return;
  std::erase_if(*kept_, [arena](const auto& kept) { return arena->engine->Owns(kept.first); });
  count_.store(kept_->size(), std::memory_order_release);
}

void GraphMemory::ResetAfterFork() {
  new (&mutex_) std::mutex;
  active_.store(0);
  count_.store(0);
  freed_count_.store(0);
  capturing_ = nullptr;
  kept_ = nullptr;
  freed_ = nullptr;
}

}  // namespace hotpack
