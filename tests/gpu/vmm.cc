// Virtual memory management as the arena uses it: its costs, and its waits.
#include <cuda.h>

#include <utility>

#include "tests/gpu/driver.h"
#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

constexpr size_t kChunk = 2 * kMiB;

// A reservation of some chunks, freed at the end. The code that mapped the chunks unmaps them before.
class Reservation {
 public:
  Reservation(const Driver& driver, size_t bytes) : driver_(driver), bytes_(bytes) {
    HOTPACK_NEED_DRIVER(driver.cuMemAddressReserve(&base_, bytes, 0, 0, 0));
  }
  ~Reservation() { driver_.cuMemAddressFree(base_, bytes_); }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  CUdeviceptr chunk(size_t i) const { return base_ + i * kChunk; }

 private:
  const Driver& driver_;
  CUdeviceptr base_ = 0;
  size_t bytes_;
};

void Granularity(const Probe& probe, const Driver& driver) {
  const CUmemAllocationProp prop = DeviceMemory();
  for (const auto& [name, flag] : {std::pair{"minimum", CU_MEM_ALLOC_GRANULARITY_MINIMUM},
                                   std::pair{"recommended", CU_MEM_ALLOC_GRANULARITY_RECOMMENDED}}) {
    size_t bytes = 0;
    HOTPACK_NEED_DRIVER(driver.cuMemGetAllocationGranularity(&bytes, &prop, flag));
    probe.found->Fact(bytes == kChunk, std::string("vmm.granularity.") + name, "2097152 bytes",
                      std::to_string(bytes) + " bytes");
  }
}

template <typename Call>
void Sample(const Probe& probe, std::vector<double>* samples, const char* what, Call call) {
  const Stopwatch watch;
  const CUresult result = call();
  const double ns = watch.Nanoseconds();
  NeedDriver(result, what);
  if (!probe.simulated) samples->push_back(ns);
}

void Costs(const Probe& probe, const Driver& driver) {
  const auto chunks = static_cast<size_t>(probe.Rounds(64));
  const CUmemAllocationProp prop = DeviceMemory();
  const CUmemAccessDesc access = DeviceAccess();
  const Reservation space(driver, chunks * kChunk);
  std::vector<CUmemGenericAllocationHandle> handles(chunks);
  std::vector<double> create, map, set_access, unmap, release, whole, plain, plain_free;
  for (size_t i = 0; i < chunks; ++i) {
    const CUdeviceptr at = space.chunk(i);
    Sample(probe, &create, "cuMemCreate", [&] { return driver.cuMemCreate(&handles[i], kChunk, &prop, 0); });
    Sample(probe, &map, "cuMemMap", [&] { return driver.cuMemMap(at, kChunk, 0, handles[i], 0); });
    Sample(probe, &set_access, "cuMemSetAccess", [&] { return driver.cuMemSetAccess(at, kChunk, &access, 1); });
  }
  // Access for all chunks in one call, as after growing by several.
  Sample(probe, &whole, "cuMemSetAccess",
         [&] { return driver.cuMemSetAccess(space.chunk(0), chunks * kChunk, &access, 1); });
  for (size_t i = 0; i < chunks; ++i) {
    Sample(probe, &unmap, "cuMemUnmap", [&] { return driver.cuMemUnmap(space.chunk(i), kChunk); });
    Sample(probe, &release, "cuMemRelease", [&] { return driver.cuMemRelease(handles[i]); });
  }
  for (size_t i = 0; i < chunks; ++i) {  // for comparison; under hotpack its own
    CUdeviceptr p = 0;
    Sample(probe, &plain, "cuMemAlloc", [&] { return driver.cuMemAlloc_v2(&p, kChunk); });
    Sample(probe, &plain_free, "cuMemFree", [&] { return driver.cuMemFree_v2(p); });
  }
  Findings& found = *probe.found;
  found.AddFigure("vmm.cuMemCreate", "ns", create);
  found.AddFigure("vmm.cuMemMap", "ns", map);
  found.AddFigure("vmm.cuMemSetAccess", "ns", set_access);
  found.AddFigure("vmm.cuMemSetAccess_all", "ns", whole);
  found.AddFigure("vmm.cuMemUnmap", "ns", unmap);
  found.AddFigure("vmm.cuMemRelease", "ns", release);
  found.AddFigure("vmm.cuMemAlloc", "ns", plain);
  found.AddFigure("vmm.cuMemFree", "ns", plain_free);
}

// The arena reserves a multiple of the device's memory once.
void LargestReservation(const Probe& probe, const Driver& driver) {
  size_t total = 0;
  HOTPACK_NEED_DRIVER(driver.cuDeviceTotalMem_v2(&total, 0));
  size_t largest = 0;
  for (size_t bytes = size_t{1} << 30; bytes <= size_t{1} << 48; bytes *= 2) {
    CUdeviceptr base = 0;
    if (driver.cuMemAddressReserve(&base, bytes, 0, 0, 0) != CUDA_SUCCESS) break;
    HOTPACK_NEED_DRIVER(driver.cuMemAddressFree(base, bytes));
    largest = bytes;
  }
  probe.found->AddFigure("vmm.largest_reservation", "bytes", {double(largest)});
  probe.found->Fact(largest >= 4 * total, "vmm.reservation", "four times the device's memory in one piece",
                    std::to_string(largest >> 30) + " GiB; the device has " + std::to_string(total >> 30) + " GiB");
}

// One handle at two addresses: a value written at one is read at the other. Memory outlives its handle while mapped.
void TwoMappings(const Probe& probe, const Driver& driver) {
  const CUmemAllocationProp prop = DeviceMemory();
  const CUmemAccessDesc access = DeviceAccess();
  const Reservation space(driver, 2 * kChunk);
  CUmemGenericAllocationHandle handle = 0;
  HOTPACK_NEED_DRIVER(driver.cuMemCreate(&handle, kChunk, &prop, 0));
  HOTPACK_NEED_DRIVER(driver.cuMemMap(space.chunk(0), kChunk, 0, handle, 0));
  const CUresult second = driver.cuMemMap(space.chunk(1), kChunk, 0, handle, 0);
  const bool mapped = second == CUDA_SUCCESS;
  HOTPACK_NEED_DRIVER(driver.cuMemRelease(handle));
  HOTPACK_NEED_DRIVER(driver.cuMemSetAccess(space.chunk(0), (mapped ? 2 : 1) * kChunk, &access, 1));
  HOTPACK_NEED(cudaMemset(reinterpret_cast<void*>(space.chunk(0)), 0x3c, kChunk));
  HOTPACK_NEED(cudaDeviceSynchronize());
  const size_t first_wrong = CountOther(reinterpret_cast<void*>(space.chunk(0)), kChunk, 0x3c);
  probe.found->Fact(first_wrong == 0, "vmm.outlives_handle", "mapped memory stays when its handle is released",
                    std::to_string(first_wrong) + " bytes wrong");
  const size_t wrong = mapped ? CountOther(reinterpret_cast<void*>(space.chunk(1)), kChunk, 0x3c) : kChunk;
  probe.found->Fact(mapped && wrong == 0, "vmm.two_mappings", "one handle can be mapped twice, and is the same memory",
                    ResultText(second) + ", " + std::to_string(wrong) + " bytes wrong");
  HOTPACK_NEED(cudaDeviceSynchronize());
  HOTPACK_NEED_DRIVER(driver.cuMemUnmap(space.chunk(0), kChunk));
  if (mapped) HOTPACK_NEED_DRIVER(driver.cuMemUnmap(space.chunk(1), kChunk));
}

// Growing must not wait for running work; giving back may (hotpack waits by itself before it unmaps).
void WhileRunning(const Probe& probe, const Driver& driver) {
  const CUmemAllocationProp prop = DeviceMemory();
  const CUmemAccessDesc access = DeviceAccess();
  const Reservation space(driver, kChunk);
  const Stream stream;
  const auto start = [&] {
    HOTPACK_NEED(cudaDeviceSynchronize());
    HOTPACK_NEED(LegacyKernels().spin(probe.Nanoseconds(60), stream));
  };
  const auto ended = [&] {
    const bool over = cudaStreamQuery(stream) == cudaSuccess;
    cudaGetLastError();
    return over;
  };
  CUmemGenericAllocationHandle handle = 0;
  start();
  HOTPACK_NEED_DRIVER(driver.cuMemCreate(&handle, kChunk, &prop, 0));
  HOTPACK_NEED_DRIVER(driver.cuMemMap(space.chunk(0), kChunk, 0, handle, 0));
  HOTPACK_NEED_DRIVER(driver.cuMemSetAccess(space.chunk(0), kChunk, &access, 1));
  const bool growing_waits = ended();
  start();
  HOTPACK_NEED_DRIVER(driver.cuMemUnmap(space.chunk(0), kChunk));  // no work has ever used it
  const bool unmapping_waits = ended();
  HOTPACK_NEED_DRIVER(driver.cuMemRelease(handle));
  const bool release_waits = ended();
  HOTPACK_NEED(cudaDeviceSynchronize());
  if (probe.simulated) {
    probe.found->Skip("vmm.while_running", "nothing is ever running on the simulated device");
    return;
  }
  probe.found->Fact(!growing_waits, "vmm.growing_waits", "cuMemCreate, cuMemMap and cuMemSetAccess return at once",
                    growing_waits ? "they waited for running work" : "they did");
  probe.found->Pass("vmm.unmapping_waits", "either: hotpack waits before it unmaps",
                    std::string("cuMemUnmap ") + (unmapping_waits ? "waited" : "did not wait") +
                        "; after cuMemRelease the work had " + (release_waits ? "" : "not ") + "ended");
}

// The arena may have to grow while a stream is capturing: these calls are not among those that a capture forbids.
void DuringCapture(const Probe& probe, const Driver& driver) {
  const CUmemAllocationProp prop = DeviceMemory();
  const CUmemAccessDesc access = DeviceAccess();
  const Reservation space(driver, kChunk);
  const Stream stream;
  HOTPACK_NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CUmemGenericAllocationHandle handle = 0;
  const CUresult created = driver.cuMemCreate(&handle, kChunk, &prop, 0);
  CUresult mapped = CUDA_ERROR_NOT_INITIALIZED, enabled = CUDA_ERROR_NOT_INITIALIZED;
  if (created == CUDA_SUCCESS) mapped = driver.cuMemMap(space.chunk(0), kChunk, 0, handle, 0);
  if (mapped == CUDA_SUCCESS) enabled = driver.cuMemSetAccess(space.chunk(0), kChunk, &access, 1);
  cudaGraph_t graph = nullptr;
  const cudaError_t end = cudaStreamEndCapture(stream, &graph);
  cudaGetLastError();
  if (graph != nullptr) HOTPACK_NEED(cudaGraphDestroy(graph));
  probe.found->Fact(enabled == CUDA_SUCCESS && end == cudaSuccess, "vmm.during_capture",
                    "memory can be created and mapped during a global capture, which stays valid",
                    "cuMemCreate " + ResultText(created) + ", cuMemMap " + ResultText(mapped) + ", cuMemSetAccess " +
                        ResultText(enabled) + ", end of capture " + ErrorName(end));
  if (mapped == CUDA_SUCCESS) HOTPACK_NEED_DRIVER(driver.cuMemUnmap(space.chunk(0), kChunk));
  if (created == CUDA_SUCCESS) HOTPACK_NEED_DRIVER(driver.cuMemRelease(handle));
}

}  // namespace

void RunVmm(Probe& probe) {
  const Driver driver;
  if (const std::string missing = driver.Missing(); !missing.empty()) {
    probe.found->Skip("vmm.driver", "the driver has no " + missing);
    return;
  }
  Granularity(probe, driver);
  Costs(probe, driver);
  LargestReservation(probe, driver);
  TwoMappings(probe, driver);
  WhileRunning(probe, driver);
  DuringCapture(probe, driver);
}

}  // namespace hotpack::gpu
