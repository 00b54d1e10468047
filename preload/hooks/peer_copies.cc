#include "preload/hooks/peer_copies.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "preload/hooks/hook_table.h"
#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "runtime/process/arena_table.h"

namespace hotpack {
namespace {

struct End {
  CUcontext context = nullptr;
  CUdevice device = 0;
  ContextArena* arena = nullptr;  // null: memory of the driver
};

using Way = CopyWay;

struct Ends {
  End to, from;
  Way way = Way::kPlain;
};

// Returns false for memory of the host, managed memory, and addresses that the driver does not know.
bool FindEnd(const CudaDriver& driver, CUdeviceptr address, End* end) {
  if (end->arena != nullptr) {
    end->context = end->arena->context;
    end->device = end->arena->memory->device();
    return true;
  }
  unsigned type = 0, managed = 0;
  int device = 0;
  if (driver.PointerGetAttribute == nullptr ||
      driver.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS ||
      type != CU_MEMORYTYPE_DEVICE ||
      driver.PointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) != CUDA_SUCCESS || managed != 0 ||
      driver.PointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) != CUDA_SUCCESS) {
    return false;
  }
  end->device = device;
  // Memory of pools and of cuMemMap has no context: any of its device will do.
  if (driver.PointerGetAttribute(&end->context, CU_POINTER_ATTRIBUTE_CONTEXT, address) != CUDA_SUCCESS) {
    end->context = nullptr;
  }
  if (end->context == nullptr) {
    Arenas().ForEach([&](ContextArena* arena) {
      if (arena->memory->device() == device) end->context = arena->context;
    });
  }
  return end->context != nullptr;
}

// Without a driver call where both ends are in arenas.
Ends FindEnds(CUdeviceptr to, CUdeviceptr from) {
  Ends ends;
  const CudaDriver* driver = Driver();
  ends.to.arena = Arenas().FindOwner(to);
  ends.from.arena = Arenas().FindOwner(from);
  if (driver == nullptr || (ends.to.arena == nullptr && ends.from.arena == nullptr)) return ends;
  if (!FindEnd(*driver, to, &ends.to) || !FindEnd(*driver, from, &ends.from)) return ends;
  const auto reaches = [](const End& memory, const End& other) {
    return memory.arena == nullptr || memory.arena->memory->CopiesReach(other.device);
  };
  ends.way = reaches(ends.to, ends.from) && reaches(ends.from, ends.to) ? Way::kRetry : Way::kPeer;
  return ends;
}

void Count(const Ends& ends) {
  const ContextArena* arena = ends.to.arena != nullptr ? ends.to.arena : ends.from.arena;
  arena->engine->AddTo(&hotpack_stats::peer_copies, 1);
}

// plain() and peer(ends) call the driver.
template <typename Plain, typename Peer>
CUresult Copy(CUdeviceptr to, CUdeviceptr from, Plain plain, Peer peer) {
  Ends ends;
  {
    HookScope scope;
    if (scope.Active()) ends = FindEnds(to, from);
  }
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (ends.way != Way::kPeer) result = plain();
  if (ends.way == Way::kPlain || result != CUDA_ERROR_INVALID_VALUE) return result;
  const CUresult by_contexts = peer(ends);
  if (by_contexts == CUDA_SUCCESS) Count(ends);
  return ends.way == Way::kPeer || by_contexts == CUDA_SUCCESS ? by_contexts : result;
}

// --- the functions that a copy goes to -------------------------------------------------------------------------------

// The way that copies took until they were checked.
template <HookId>
constinit std::atomic<void*> plain_way{nullptr};

template <HookId id, typename Function>
Function PlainWay() {
  return reinterpret_cast<Function>(plain_way<id>.load(std::memory_order_acquire));
}

using LinearPeer = CUresult (*)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t);
using LinearPeerAsync = CUresult (*)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream);
using BoxPeer = CUresult (*)(const CUDA_MEMCPY3D_PEER*);
using BoxPeerAsync = CUresult (*)(const CUDA_MEMCPY3D_PEER*, CUstream);

template <HookId plain, HookId peer>
CUresult Linear(CUdeviceptr to, CUdeviceptr from, size_t bytes) noexcept {
  return Copy(
      to, from, [=] { return PlainWay<plain, CUresult (*)(CUdeviceptr, CUdeviceptr, size_t)>()(to, from, bytes); },
      [=](const Ends& ends) { return JumpOf<LinearPeer>(peer)(to, ends.to.context, from, ends.from.context, bytes); });
}

template <HookId plain, HookId peer>
CUresult LinearAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) noexcept {
  return Copy(
      to, from,
      [=] {
        return PlainWay<plain, CUresult (*)(CUdeviceptr, CUdeviceptr, size_t, CUstream)>()(to, from, bytes, stream);
      },
      [=](const Ends& ends) {
        return JumpOf<LinearPeerAsync>(peer)(to, ends.to.context, from, ends.from.context, bytes, stream);
      });
}

// --- copies of rectangles and boxes ----------------------------------------------------------------------------------

bool OnDevice(CUmemorytype type) { return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED; }

// The common members. A pitch of 0 is allowed for a single row.
template <typename Spec>
CUDA_MEMCPY3D_PEER PlaneToPeer(const Spec& spec) {
  CUDA_MEMCPY3D_PEER peer = {};
  peer.srcXInBytes = spec.srcXInBytes;
  peer.srcY = spec.srcY;
  peer.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  peer.srcDevice = spec.srcDevice;
  peer.srcPitch = spec.srcPitch != 0 ? spec.srcPitch : spec.WidthInBytes + spec.srcXInBytes;
  peer.dstXInBytes = spec.dstXInBytes;
  peer.dstY = spec.dstY;
  peer.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  peer.dstDevice = spec.dstDevice;
  peer.dstPitch = spec.dstPitch != 0 ? spec.dstPitch : spec.WidthInBytes + spec.dstXInBytes;
  peer.WidthInBytes = spec.WidthInBytes;
  peer.Height = spec.Height;
  peer.Depth = 1;
  return peer;
}

CUDA_MEMCPY3D_PEER ToPeer(const CUDA_MEMCPY2D& spec) { return PlaneToPeer(spec); }

CUDA_MEMCPY3D_PEER ToPeer(const CUDA_MEMCPY3D& spec) {
  CUDA_MEMCPY3D_PEER peer = PlaneToPeer(spec);
  peer.srcZ = spec.srcZ;
  peer.srcLOD = spec.srcLOD;
  peer.srcHeight = spec.srcHeight;
  peer.dstZ = spec.dstZ;
  peer.dstLOD = spec.dstLOD;
  peer.dstHeight = spec.dstHeight;
  peer.Depth = spec.Depth;
  return peer;
}

CUdeviceptr FirstByteOfSource(const CUDA_MEMCPY3D_PEER& spec) {
  const size_t height = spec.srcHeight != 0 ? spec.srcHeight : spec.Height;
  return spec.srcDevice + (spec.srcZ * height + spec.srcY) * spec.srcPitch + spec.srcXInBytes;
}
CUdeviceptr FirstByteOfTarget(const CUDA_MEMCPY3D_PEER& spec) {
  const size_t height = spec.dstHeight != 0 ? spec.dstHeight : spec.Height;
  return spec.dstDevice + (spec.dstZ * height + spec.dstY) * spec.dstPitch + spec.dstXInBytes;
}

// plain(), peer(const CUDA_MEMCPY3D_PEER*) call the driver. Copies of arrays and of host memory are plain.
template <typename Spec, typename Plain, typename Peer>
CUresult CopyBox(const Spec* spec, Plain plain, Peer peer) {
  if (spec == nullptr || !OnDevice(spec->srcMemoryType) || !OnDevice(spec->dstMemoryType)) return plain();
  CUDA_MEMCPY3D_PEER named = ToPeer(*spec);
  return Copy(FirstByteOfTarget(named), FirstByteOfSource(named), plain, [&](const Ends& ends) {
    named.srcContext = ends.from.context;
    named.dstContext = ends.to.context;
    return peer(&named);
  });
}

template <typename Spec, HookId plain, HookId peer>
CUresult Box(const Spec* spec) noexcept {
  return CopyBox(
      spec, [=] { return PlainWay<plain, CUresult (*)(const Spec*)>()(spec); },
      [](const CUDA_MEMCPY3D_PEER* named) { return JumpOf<BoxPeer>(peer)(named); });
}

template <typename Spec, HookId plain, HookId peer>
CUresult BoxAsync(const Spec* spec, CUstream stream) noexcept {
  return CopyBox(
      spec, [=] { return PlainWay<plain, CUresult (*)(const Spec*, CUstream)>()(spec, stream); },
      [=](const CUDA_MEMCPY3D_PEER* named) { return JumpOf<BoxPeerAsync>(peer)(named, stream); });
}

// --- batches ---------------------------------------------------------------------------------------------------------

#if CUDA_VERSION >= 12080

// The way of a whole batch is kPeer if that of any copy is, else kRetry if that of any copy is.
Way WayOf(size_t count, const CUdeviceptr* to, const CUdeviceptr* from) {
  HookScope scope;
  Way way = Way::kPlain;
  if (!scope.Active() || to == nullptr || from == nullptr) return way;
  for (size_t i = 0; i < count && way != Way::kPeer; ++i) way = std::max(way, FindEnds(to[i], from[i]).way);
  return way;
}

// all(): as one batch. each(): copy by copy.
template <typename All, typename Each>
CUresult ByWay(Way way, All all, Each each) {
  const CUresult result = way != Way::kPeer ? all() : CUDA_ERROR_INVALID_VALUE;
  return way == Way::kPlain || result != CUDA_ERROR_INVALID_VALUE ? result : each();
}

// The first versions of batches return the number of the copy that failed.
void NoteFailed(size_t) {}
void NoteFailed(size_t copy, size_t* failed) {
  if (failed != nullptr) *failed = copy;
}

// The copies of a batch may run in any order, so they can be made one by one. Each keeps its attributes. `more`: the
// first version's failing copy.
template <HookId plain, HookId peer, typename... More>
CUresult Batch(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count, CUmemcpyAttributes* attributes,
               size_t* first_copies, size_t attribute_count, More... more, CUstream stream) noexcept {
  using Function = CUresult (*)(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*, size_t*, size_t,
                                More..., CUstream);
  const auto call = [&](size_t i, size_t n, CUmemcpyAttributes* with, size_t* firsts, size_t with_count) {
    return PlainWay<plain, Function>()(to + i, from + i, bytes + i, n, with, firsts, with_count, more..., stream);
  };
  const bool complete = bytes != nullptr && attributes != nullptr && first_copies != nullptr && attribute_count > 0;
  return ByWay(
      complete ? WayOf(count, to, from) : Way::kPlain,
      [&] { return call(0, count, attributes, first_copies, attribute_count); },
      [&] {
        size_t current = 0, zero = 0;
        for (size_t i = 0; i < count; ++i) {
          while (current + 1 < attribute_count && first_copies[current + 1] <= i) ++current;
          const CUresult result = Copy(
              to[i], from[i], [&] { return call(i, 1, attributes + current, &zero, 1); },
              [&](const Ends& ends) {
                return JumpOf<LinearPeerAsync>(peer)(to[i], ends.to.context, from[i], ends.from.context, bytes[i],
                                                     stream);
              });
          if (result == CUDA_SUCCESS) continue;
          NoteFailed(i, more...);
          return result;
        }
        return CUDA_SUCCESS;
      });
}

bool OnDevice(const CUDA_MEMCPY3D_BATCH_OP& op) {
  return op.src.type == CU_MEMCPY_OPERAND_TYPE_POINTER && op.dst.type == CU_MEMCPY_OPERAND_TYPE_POINTER;
}

// A length or height of 0: as tight as can be.
CUDA_MEMCPY3D_PEER ToPeer(const CUDA_MEMCPY3D_BATCH_OP& op) {
  const auto& from = op.src.op.ptr;
  const auto& to = op.dst.op.ptr;
  CUDA_MEMCPY3D_PEER peer = {};
  peer.srcMemoryType = peer.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  peer.srcDevice = from.ptr;
  peer.srcPitch = from.rowLength != 0 ? from.rowLength : op.extent.width;
  peer.srcHeight = from.layerHeight != 0 ? from.layerHeight : op.extent.height;
  peer.dstDevice = to.ptr;
  peer.dstPitch = to.rowLength != 0 ? to.rowLength : op.extent.width;
  peer.dstHeight = to.layerHeight != 0 ? to.layerHeight : op.extent.height;
  peer.WidthInBytes = op.extent.width;
  peer.Height = op.extent.height;
  peer.Depth = op.extent.depth;
  return peer;
}

Way WayOf(size_t count, const CUDA_MEMCPY3D_BATCH_OP* ops) {
  HookScope scope;
  Way way = Way::kPlain;
  if (!scope.Active() || ops == nullptr) return way;
  for (size_t i = 0; i < count && way != Way::kPeer; ++i) {
    if (OnDevice(ops[i])) way = std::max(way, FindEnds(ops[i].dst.op.ptr.ptr, ops[i].src.op.ptr.ptr).way);
  }
  return way;
}

// Copies with attributes, of CUDA 13.2: a copy of a batch, in the stream's order.
template <HookId plain, HookId peer>
CUresult WithAttributes(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUmemcpyAttributes* attributes,
                        CUstream stream) noexcept {
  using Function = CUresult (*)(CUdeviceptr, CUdeviceptr, size_t, CUmemcpyAttributes*, CUstream);
  return Copy(
      to, from, [=] { return PlainWay<plain, Function>()(to, from, bytes, attributes, stream); },
      [=](const Ends& ends) {
        return JumpOf<LinearPeerAsync>(peer)(to, ends.to.context, from, ends.from.context, bytes, stream);
      });
}

template <HookId plain, HookId peer>
CUresult BoxWithAttributes(CUDA_MEMCPY3D_BATCH_OP* op, unsigned long long flags, CUstream stream) noexcept {
  const auto call = [=] {
    return PlainWay<plain, CUresult (*)(CUDA_MEMCPY3D_BATCH_OP*, unsigned long long, CUstream)>()(op, flags, stream);
  };
  if (op == nullptr || !OnDevice(*op)) return call();
  CUDA_MEMCPY3D_PEER named = ToPeer(*op);
  return Copy(named.dstDevice, named.srcDevice, call, [&](const Ends& ends) {
    named.srcContext = ends.from.context;
    named.dstContext = ends.to.context;
    return JumpOf<BoxPeerAsync>(peer)(&named, stream);
  });
}

template <HookId plain, HookId peer, typename... More>
CUresult BoxBatch(size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, More... more, unsigned long long flags,
                  CUstream stream) noexcept {
  using Function = CUresult (*)(size_t, CUDA_MEMCPY3D_BATCH_OP*, More..., unsigned long long, CUstream);
  const auto call = [&](size_t i, size_t n) { return PlainWay<plain, Function>()(n, ops + i, more..., flags, stream); };
  const auto one = [&](size_t i) {
    if (!OnDevice(ops[i])) return call(i, 1);
    CUDA_MEMCPY3D_PEER named = ToPeer(ops[i]);
    return Copy(
        named.dstDevice, named.srcDevice, [&] { return call(i, 1); },
        [&](const Ends& ends) {
          named.srcContext = ends.from.context;
          named.dstContext = ends.to.context;
          return JumpOf<BoxPeerAsync>(peer)(&named, stream);
        });
  };
  return ByWay(
      WayOf(count, ops), [&] { return call(0, count); },
      [&] {
        for (size_t i = 0; i < count; ++i) {
          const CUresult result = one(i);
          if (result == CUDA_SUCCESS) continue;
          NoteFailed(i, more...);
          return result;
        }
        return CUDA_SUCCESS;
      });
}

#endif

// --- the table -------------------------------------------------------------------------------------------------------

struct Checked {
  HookId id;
  void* function;
  std::atomic<void*>* plain_way;
};

template <HookId id>
Checked Row(void* function) {
  return {id, function, &plain_way<id>};
}

// Not nested: cuda.h makes macros of some names.
#define HOTPACK_LINEAR(plain, peer, function) \
  Row<HookId::k##plain>(reinterpret_cast<void*>(&function<HookId::k##plain, HookId::k##peer>))
#define HOTPACK_BOX(plain, peer, function, spec) \
  Row<HookId::k##plain>(reinterpret_cast<void*>(&function<spec, HookId::k##plain, HookId::k##peer>))
#define HOTPACK_BATCH(plain, peer, function, ...) \
  Row<HookId::k##plain>(                          \
      reinterpret_cast<void*>(&function<HookId::k##plain, HookId::k##peer __VA_OPT__(, ) __VA_ARGS__>))

void CheckCopies() {
  const Checked all[] = {
    HOTPACK_LINEAR(cuMemcpy, cuMemcpyPeer, Linear),
    HOTPACK_LINEAR(cuMemcpy_ptds, cuMemcpyPeer_ptds, Linear),
    HOTPACK_LINEAR(cuMemcpyDtoD_v2, cuMemcpyPeer, Linear),
    HOTPACK_LINEAR(cuMemcpyDtoD_v2_ptds, cuMemcpyPeer_ptds, Linear),
    HOTPACK_LINEAR(cuMemcpyAsync, cuMemcpyPeerAsync, LinearAsync),
    HOTPACK_LINEAR(cuMemcpyAsync_ptsz, cuMemcpyPeerAsync_ptsz, LinearAsync),
    HOTPACK_LINEAR(cuMemcpyDtoDAsync_v2, cuMemcpyPeerAsync, LinearAsync),
    HOTPACK_LINEAR(cuMemcpyDtoDAsync_v2_ptsz, cuMemcpyPeerAsync_ptsz, LinearAsync),
    HOTPACK_BOX(cuMemcpy2D_v2, cuMemcpy3DPeer, Box, CUDA_MEMCPY2D),
    HOTPACK_BOX(cuMemcpy2D_v2_ptds, cuMemcpy3DPeer_ptds, Box, CUDA_MEMCPY2D),
    HOTPACK_BOX(cuMemcpy2DUnaligned_v2, cuMemcpy3DPeer, Box, CUDA_MEMCPY2D),
    HOTPACK_BOX(cuMemcpy2DUnaligned_v2_ptds, cuMemcpy3DPeer_ptds, Box, CUDA_MEMCPY2D),
    HOTPACK_BOX(cuMemcpy2DAsync_v2, cuMemcpy3DPeerAsync, BoxAsync, CUDA_MEMCPY2D),
    HOTPACK_BOX(cuMemcpy2DAsync_v2_ptsz, cuMemcpy3DPeerAsync_ptsz, BoxAsync, CUDA_MEMCPY2D),
    HOTPACK_BOX(cuMemcpy3D_v2, cuMemcpy3DPeer, Box, CUDA_MEMCPY3D),
    HOTPACK_BOX(cuMemcpy3D_v2_ptds, cuMemcpy3DPeer_ptds, Box, CUDA_MEMCPY3D),
    HOTPACK_BOX(cuMemcpy3DAsync_v2, cuMemcpy3DPeerAsync, BoxAsync, CUDA_MEMCPY3D),
    HOTPACK_BOX(cuMemcpy3DAsync_v2_ptsz, cuMemcpy3DPeerAsync_ptsz, BoxAsync, CUDA_MEMCPY3D),
#if CUDA_VERSION >= 12080
    HOTPACK_BATCH(cuMemcpyBatchAsync, cuMemcpyPeerAsync, Batch, size_t*),
    HOTPACK_BATCH(cuMemcpyBatchAsync_ptsz, cuMemcpyPeerAsync_ptsz, Batch, size_t*),
    HOTPACK_BATCH(cuMemcpyBatchAsync_v2, cuMemcpyPeerAsync, Batch),
    HOTPACK_BATCH(cuMemcpyBatchAsync_v2_ptsz, cuMemcpyPeerAsync_ptsz, Batch),
    HOTPACK_BATCH(cuMemcpy3DBatchAsync, cuMemcpy3DPeerAsync, BoxBatch, size_t*),
    HOTPACK_BATCH(cuMemcpy3DBatchAsync_ptsz, cuMemcpy3DPeerAsync_ptsz, BoxBatch, size_t*),
    HOTPACK_BATCH(cuMemcpy3DBatchAsync_v2, cuMemcpy3DPeerAsync, BoxBatch),
    HOTPACK_BATCH(cuMemcpy3DBatchAsync_v2_ptsz, cuMemcpy3DPeerAsync_ptsz, BoxBatch),
    HOTPACK_LINEAR(cuMemcpyWithAttributesAsync, cuMemcpyPeerAsync, WithAttributes),
    HOTPACK_LINEAR(cuMemcpyWithAttributesAsync_ptsz, cuMemcpyPeerAsync_ptsz, WithAttributes),
    HOTPACK_LINEAR(cuMemcpy3DWithAttributesAsync, cuMemcpy3DPeerAsync, BoxWithAttributes),
    HOTPACK_LINEAR(cuMemcpy3DWithAttributesAsync_ptsz, cuMemcpy3DPeerAsync_ptsz, BoxWithAttributes),
#endif
  };
  for (const Checked& checked : all) RedirectWork(checked.id, checked.function, checked.plain_way);
}

}  // namespace

CopyWay FindCopyWay(const CUDA_MEMCPY3D& copy, CUDA_MEMCPY3D_PEER* named) {
  if (!OnDevice(copy.srcMemoryType) || !OnDevice(copy.dstMemoryType)) return CopyWay::kPlain;
  *named = ToPeer(copy);
  const Ends ends = FindEnds(FirstByteOfTarget(*named), FirstByteOfSource(*named));
  named->srcContext = ends.from.context;
  named->dstContext = ends.to.context;
  return ends.way;
}

void CountPeerCopy(const CUDA_MEMCPY3D_PEER& named) {
  Ends ends;
  ends.to.arena = Arenas().FindOwner(FirstByteOfTarget(named));
  ends.from.arena = Arenas().FindOwner(FirstByteOfSource(named));
  if (ends.to.arena != nullptr || ends.from.arena != nullptr) Count(ends);
}

void NoteContextDevice(CUdevice device) {
  static constinit std::atomic<CUdevice> first{-1};
  static constinit std::atomic<bool> checking{false};
  CUdevice known = -1;
  if (first.compare_exchange_strong(known, device) || known == device) return;
  if (GetOptions().peer_copies && !checking.exchange(true)) CheckCopies();
}

}  // namespace hotpack
