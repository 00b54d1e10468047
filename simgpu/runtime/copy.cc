// Copies and memsets.
#include "simgpu/runtime/copy_spec.h"
#include "simgpu/runtime/runtime.h"

using namespace simgpu_runtime;

namespace {

CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// Copies by that one of the driver's four functions which the kind names. Those in stream order take a stream as well.
template <typename... Stream>
CUresult CopyBy(CUresult (*to_device)(CUdeviceptr, const void*, size_t, Stream...),
                CUresult (*to_host)(void*, CUdeviceptr, size_t, Stream...),
                CUresult (*on_device)(CUdeviceptr, CUdeviceptr, size_t, Stream...),
                CUresult (*by_address)(CUdeviceptr, CUdeviceptr, size_t, Stream...), void* to, const void* from,
                size_t bytes, cudaMemcpyKind kind, Stream... stream) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return to_device(Address(to), from, bytes, stream...);
    case cudaMemcpyDeviceToHost:
      return to_host(to, Address(from), bytes, stream...);
    case cudaMemcpyDeviceToDevice:
      return on_device(Address(to), Address(from), bytes, stream...);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return by_address(Address(to), Address(from), bytes, stream...);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult Copy(const DriverTable& drv, int pt, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return CopyBy(drv.cuMemcpyHtoD[pt], drv.cuMemcpyDtoH[pt], drv.cuMemcpyDtoD[pt], drv.cuMemcpy[pt], to, from, bytes,
                kind);
}

CUresult CopyAsync(const DriverTable& drv, int pt, void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                   cudaStream_t stream) {
  return CopyBy(drv.cuMemcpyHtoDAsync[pt], drv.cuMemcpyDtoHAsync[pt], drv.cuMemcpyDtoDAsync[pt], drv.cuMemcpyAsync[pt],
                to, from, bytes, kind, stream);
}

// The primary contexts of the devices, which stay retained, as after cudaSetDevice.
CUresult PeerContexts(const DriverTable& drv, int to_device, int from_device, CUcontext contexts[2]) {
  const CUresult status = drv.cuDevicePrimaryCtxRetain(&contexts[0], to_device);
  return status != CUDA_SUCCESS ? status : drv.cuDevicePrimaryCtxRetain(&contexts[1], from_device);
}

// Copies by `copy` to or from a variable of the device, `offset` bytes into it.
template <typename CopyAt>
cudaError_t CopyVariable(const void* symbol, size_t offset, CopyAt copy) {
  CUdeviceptr base = 0;
  const CUresult status = FindVariable(symbol, &base, nullptr);
  return Set(status == CUDA_SUCCESS ? copy(reinterpret_cast<void*>(base + offset)) : status);
}

CUmemorytype TypeOf(cudaMemcpyKind kind, bool source) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return CU_MEMORYTYPE_HOST;
    case cudaMemcpyHostToDevice:
      return source ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    case cudaMemcpyDeviceToHost:
      return source ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    case cudaMemcpyDeviceToDevice:
      return CU_MEMORYTYPE_DEVICE;
    case cudaMemcpyDefault:
      break;
  }
  return CU_MEMORYTYPE_UNIFIED;
}

// Sets what copies of planes and of boxes have in common.
template <typename Spec>
void SetEnds(Spec* s, void* to, size_t to_pitch, const void* from, size_t from_pitch, cudaMemcpyKind kind) {
  *s = {};
  s->srcMemoryType = TypeOf(kind, true);
  s->srcHost = from;
  s->srcDevice = Address(from);
  s->srcPitch = from_pitch;
  s->dstMemoryType = TypeOf(kind, false);
  s->dstHost = to;
  s->dstDevice = Address(to);
  s->dstPitch = to_pitch;
}

CUDA_MEMCPY2D Spec2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                     cudaMemcpyKind kind) {
  CUDA_MEMCPY2D s;
  SetEnds(&s, to, to_pitch, from, from_pitch, kind);
  s.WidthInBytes = width;
  s.Height = height;
  return s;
}

}  // namespace

namespace simgpu_runtime {

CUresult Spec3D(const cudaMemcpy3DParms* p, CUDA_MEMCPY3D* s) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (p->srcArray != nullptr || p->dstArray != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  SetEnds(s, p->dstPtr.ptr, p->dstPtr.pitch, p->srcPtr.ptr, p->srcPtr.pitch, p->kind);
  s->srcHeight = p->srcPtr.ysize;
  s->srcXInBytes = p->srcPos.x;
  s->srcY = p->srcPos.y;
  s->srcZ = p->srcPos.z;
  s->dstHeight = p->dstPtr.ysize;
  s->dstXInBytes = p->dstPos.x;
  s->dstY = p->dstPos.y;
  s->dstZ = p->dstPos.z;
  s->WidthInBytes = p->extent.width;
  s->Height = p->extent.height;
  s->Depth = p->extent.depth;
  return CUDA_SUCCESS;
}

}  // namespace simgpu_runtime

CUDART_BOTH(cudaMemcpy, cudaMemcpy_ptds, (void* to, const void* from, size_t bytes, cudaMemcpyKind kind),
            (to, from, bytes, kind), {
              CUDART_READY();
              return Set(Copy(drv, pt, to, from, bytes, kind));
            })

CUDART_BOTH(cudaMemcpyAsync, cudaMemcpyAsync_ptsz,
            (void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
            (to, from, bytes, kind, stream), {
              CUDART_READY();
              return Set(CopyAsync(drv, pt, to, from, bytes, kind, stream));
            })

CUDART_API cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  CUDART_READY();
  CUcontext contexts[2] = {};
  if (const CUresult status = PeerContexts(drv, to_device, from_device, contexts); status != CUDA_SUCCESS) {
    return Set(status);
  }
  return Set(drv.cuMemcpyPeer(Address(to), contexts[0], Address(from), contexts[1], bytes));
}

CUDART_API cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                               cudaStream_t stream) {
  CUDART_READY();
  CUcontext contexts[2] = {};
  if (const CUresult status = PeerContexts(drv, to_device, from_device, contexts); status != CUDA_SUCCESS) {
    return Set(status);
  }
  return Set(drv.cuMemcpyPeerAsync(Address(to), contexts[0], Address(from), contexts[1], bytes, stream));
}

CUDART_BOTH(cudaMemcpy2D, cudaMemcpy2D_ptds,
            (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
             cudaMemcpyKind kind),
            (to, to_pitch, from, from_pitch, width, height, kind), {
              CUDART_READY();
              const CUDA_MEMCPY2D spec = Spec2D(to, to_pitch, from, from_pitch, width, height, kind);
              return Set(drv.cuMemcpy2DUnaligned[pt](&spec));
            })

CUDART_BOTH(cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz,
            (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
             cudaMemcpyKind kind, cudaStream_t stream),
            (to, to_pitch, from, from_pitch, width, height, kind, stream), {
              CUDART_READY();
              const CUDA_MEMCPY2D spec = Spec2D(to, to_pitch, from, from_pitch, width, height, kind);
              return Set(drv.cuMemcpy2DAsync[pt](&spec, stream));
            })

CUDART_BOTH(cudaMemcpy3D, cudaMemcpy3D_ptds, (const cudaMemcpy3DParms* p), (p), {
  CUDART_READY();
  CUDA_MEMCPY3D spec;
  const CUresult status = Spec3D(p, &spec);
  return Set(status != CUDA_SUCCESS ? status : drv.cuMemcpy3D[pt](&spec));
})

CUDART_BOTH(cudaMemcpy3DAsync, cudaMemcpy3DAsync_ptsz, (const cudaMemcpy3DParms* p, cudaStream_t stream), (p, stream), {
  CUDART_READY();
  CUDA_MEMCPY3D spec;
  const CUresult status = Spec3D(p, &spec);
  return Set(status != CUDA_SUCCESS ? status : drv.cuMemcpy3DAsync[pt](&spec, stream));
})

CUDART_BOTH(cudaMemset, cudaMemset_ptds, (void* to, int value, size_t bytes), (to, value, bytes), {
  CUDART_READY();
  return Set(drv.cuMemsetD8[pt](Address(to), static_cast<unsigned char>(value), bytes));
})

CUDART_BOTH(cudaMemsetAsync, cudaMemsetAsync_ptsz, (void* to, int value, size_t bytes, cudaStream_t stream),
            (to, value, bytes, stream), {
              CUDART_READY();
              return Set(drv.cuMemsetD8Async[pt](Address(to), static_cast<unsigned char>(value), bytes, stream));
            })

CUDART_BOTH(cudaMemset2D, cudaMemset2D_ptds, (void* to, size_t pitch, int value, size_t width, size_t height),
            (to, pitch, value, width, height), {
              CUDART_READY();
              return Set(drv.cuMemsetD2D8[pt](Address(to), pitch, static_cast<unsigned char>(value), width, height));
            })

CUDART_BOTH(cudaMemset2DAsync, cudaMemset2DAsync_ptsz,
            (void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
            (to, pitch, value, width, height, stream), {
              CUDART_READY();
              return Set(drv.cuMemsetD2D8Async[pt](Address(to), pitch, static_cast<unsigned char>(value), width, height,
                                                   stream));
            })

// Fills a box of layers. The rows of a layer follow those of the layer before, so it is one plane if it has their
// height.
static CUresult Fill3D(const DriverTable& drv, int pt, cudaPitchedPtr to, int value, cudaExtent extent, bool async,
                       cudaStream_t stream) {
  const auto byte = static_cast<unsigned char>(value);
  const auto fill = [&](CUdeviceptr base, size_t rows) {
    return async ? drv.cuMemsetD2D8Async[pt](base, to.pitch, byte, extent.width, rows, stream)
                 : drv.cuMemsetD2D8[pt](base, to.pitch, byte, extent.width, rows);
  };
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return CUDA_SUCCESS;
  if (extent.height > to.ysize) return CUDA_ERROR_INVALID_VALUE;
  if (extent.height == to.ysize) return fill(Address(to.ptr), extent.height * extent.depth);
  for (size_t z = 0; z < extent.depth; ++z) {
    const CUresult status = fill(Address(to.ptr) + z * to.ysize * to.pitch, extent.height);
    if (status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

CUDART_BOTH(cudaMemset3D, cudaMemset3D_ptds, (cudaPitchedPtr to, int value, cudaExtent extent), (to, value, extent), {
  CUDART_READY();
  return Set(Fill3D(drv, pt, to, value, extent, false, nullptr));
})

CUDART_BOTH(cudaMemset3DAsync, cudaMemset3DAsync_ptsz,
            (cudaPitchedPtr to, int value, cudaExtent extent, cudaStream_t stream), (to, value, extent, stream), {
              CUDART_READY();
              return Set(Fill3D(drv, pt, to, value, extent, true, stream));
            })

CUDART_BOTH(cudaMemcpyToSymbol, cudaMemcpyToSymbol_ptds,
            (const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind),
            (symbol, from, bytes, offset, kind), {
              CUDART_READY();
              return CopyVariable(symbol, offset, [&](void* to) { return Copy(drv, pt, to, from, bytes, kind); });
            })

CUDART_BOTH(cudaMemcpyFromSymbol, cudaMemcpyFromSymbol_ptds,
            (void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind),
            (to, symbol, bytes, offset, kind), {
              CUDART_READY();
              return CopyVariable(symbol, offset, [&](void* from) { return Copy(drv, pt, to, from, bytes, kind); });
            })

CUDART_BOTH(cudaMemcpyToSymbolAsync, cudaMemcpyToSymbolAsync_ptsz,
            (const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind,
             cudaStream_t stream),
            (symbol, from, bytes, offset, kind, stream), {
              CUDART_READY();
              return CopyVariable(symbol, offset,
                                  [&](void* to) { return CopyAsync(drv, pt, to, from, bytes, kind, stream); });
            })

CUDART_BOTH(cudaMemcpyFromSymbolAsync, cudaMemcpyFromSymbolAsync_ptsz,
            (void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind, cudaStream_t stream),
            (to, symbol, bytes, offset, kind, stream), {
              CUDART_READY();
              return CopyVariable(symbol, offset,
                                  [&](void* from) { return CopyAsync(drv, pt, to, from, bytes, kind, stream); });
            })

CUDART_API cudaGetSymbolAddress(void** address, const void* symbol) {
  CUDART_READY();
  return Set(FindVariable(symbol, reinterpret_cast<CUdeviceptr*>(address), nullptr));
}

CUDART_API cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  CUDART_READY();
  CUdeviceptr base = 0;
  return Set(FindVariable(symbol, &base, bytes));
}
