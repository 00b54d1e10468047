// Ways by which other processes and other devices get at a block: CUDA IPC, dma-buf, and shareable handles of the
// program's own virtual memory.
#include <cuda.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/gpu/child.h"
#include "tests/gpu/driver.h"
#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

constexpr size_t kBytes = 4 * kMiB;
constexpr unsigned char kOurs = 0x5a, kTheirs = 0xa5;
constexpr char kHandleVariable[] = "GPU_PROBE_IPC_HANDLE";

std::string ToHex(const cudaIpcMemHandle_t& handle) {
  std::string text;
  for (const char byte : handle.reserved) {
    char digits[3];
    snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

bool FromHex(const char* text, cudaIpcMemHandle_t* handle) {
  if (text == nullptr || strlen(text) != 2 * sizeof handle->reserved) return false;
  for (size_t i = 0; i < sizeof handle->reserved; ++i) {
    unsigned byte = 0;
    if (sscanf(text + 2 * i, "%2x", &byte) != 1) return false;
    handle->reserved[i] = static_cast<char>(byte);
  }
  return true;
}

// Another process opens the block, finds this one's values, and writes its own.
void OpenElsewhere(const Probe& probe, const std::string& name, void* block, const cudaIpcMemHandle_t& handle) {
  HOTPACK_NEED(cudaMemset(block, kOurs, kBytes));
  HOTPACK_NEED(cudaDeviceSynchronize());
  setenv(kHandleVariable, ToHex(handle).c_str(), 1);
  const ChildOutcome outcome = RunChild("ipc_open", 10);
  unsetenv(kHandleVariable);
  if (probe.simulated && outcome.Value("open") == std::to_string(cudaErrorNotSupported)) {
    probe.found->Skip(name, "the simulated device opens no memory of another process");
    return;
  }
  const size_t wrong = CountOther(block, kBytes, kTheirs);
  probe.Must(outcome.Good() && outcome.Value("wrong") == "0" && wrong == 0, name,
             "another process reads the block's values and writes its own",
             outcome.end + ", open gave " + outcome.Value("open") + ", " + outcome.Value("wrong") +
                 " bytes wrong there, " + std::to_string(wrong) + " here");
}

// NCCL asks once for a handle, and takes a refusal for good. So the first block of a size counts.
void Ipc(const Probe& probe) {
  for (const char* which : {"first", "second"}) {
    const std::string name = std::string("sharing.ipc.") + which;
    void* block = nullptr;
    cudaIpcMemHandle_t handle = {};
    HOTPACK_NEED(cudaMalloc(&block, kBytes));
    const cudaError_t error = cudaIpcGetMemHandle(&handle, block);
    cudaGetLastError();
    probe.found->Fact(error == cudaSuccess, name + ".handle", "a handle", ErrorName(error));
    if (error == cudaSuccess) OpenElsewhere(probe, name + ".values", block, handle);
    HOTPACK_NEED(cudaFree(block));
  }
}

// RDMA of InfiniBand and storage gets at a block by a dma-buf of its pages.
void DmaBuf(const Probe& probe) {
  const auto get_attribute = HOTPACK_DRIVER_FUNCTION(cuDeviceGetAttribute);
  const auto get = HOTPACK_DRIVER_FUNCTION(cuMemGetHandleForAddressRange);
  int supported = 0;
  if (get == nullptr || get_attribute == nullptr ||
      get_attribute(&supported, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0) != CUDA_SUCCESS || supported == 0) {
    probe.found->Skip("sharing.dma_buf", "the device or its driver has no dma-buf");
    return;
  }
  constexpr uint64_t kPage = 64 * kKiB;
  void* block = nullptr;
  HOTPACK_NEED(cudaMalloc(&block, kBytes));
  const auto address = reinterpret_cast<uint64_t>(block);
  const uint64_t begin = (address + kPage - 1) / kPage * kPage, end = (address + kBytes) / kPage * kPage;
  int file = -1;
  const CUresult result = get(&file, begin, end - begin, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  if (result == CUDA_SUCCESS && file >= 0) close(file);
  probe.found->Fact(address % kPage == 0, "sharing.dma_buf.aligned", "a block of 4 MiB begins at a page of 64 KiB",
                    Hex(address % kPage) + " behind one");
  probe.found->Fact(result == CUDA_SUCCESS, "sharing.dma_buf", "a file descriptor", ResultText(result));
  HOTPACK_NEED(cudaFree(block));
}

// Virtual memory of the program's own, exported and imported again.
void OwnHandles(const Probe& probe) {
  const Driver driver;
  const auto export_handle = HOTPACK_DRIVER_FUNCTION(cuMemExportToShareableHandle);
  const auto import_handle = HOTPACK_DRIVER_FUNCTION(cuMemImportFromShareableHandle);
  if (!driver.Missing().empty() || export_handle == nullptr || import_handle == nullptr) {
    probe.found->Skip("sharing.own_handles", "the driver has no shareable handles");
    return;
  }
  CUmemAllocationProp prop = DeviceMemory();
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle handle = 0, imported = 0;
  int file = -1;
  const CUresult created = driver.cuMemCreate(&handle, kBytes, &prop, 0);
  CUresult exported = CUDA_ERROR_NOT_SUPPORTED;
  CUresult opened = CUDA_ERROR_NOT_SUPPORTED;
  if (created == CUDA_SUCCESS) exported = export_handle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (exported == CUDA_SUCCESS) {
    opened = import_handle(&imported, reinterpret_cast<void*>(static_cast<intptr_t>(file)),
                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  }
  if (opened == CUDA_SUCCESS) HOTPACK_NEED_DRIVER(driver.cuMemRelease(imported));
  if (file >= 0) close(file);
  if (created == CUDA_SUCCESS) HOTPACK_NEED_DRIVER(driver.cuMemRelease(handle));
  const std::string seen =
      "cuMemCreate " + ResultText(created) + ", export " + ResultText(exported) + ", import " + ResultText(opened);
  if (probe.simulated && opened != CUDA_SUCCESS) {
    probe.found->Skip("sharing.own_handles", "not on the simulated device: " + seen);
  } else {
    probe.found->Fact(opened == CUDA_SUCCESS, "sharing.own_handles", "exported as a file, and imported again", seen);
  }
}

int OpenIpc() {
  cudaIpcMemHandle_t handle = {};
  if (!FromHex(getenv(kHandleVariable), &handle)) return 3;
  void* block = nullptr;
  const cudaError_t error = cudaIpcOpenMemHandle(&block, handle, cudaIpcMemLazyEnablePeerAccess);
  printf("open=%d\n", static_cast<int>(error));
  fflush(stdout);
  if (error != cudaSuccess) return 4;
  printf("wrong=%zu\n", CountOther(block, kBytes, kOurs));
  HOTPACK_NEED(cudaMemset(block, kTheirs, kBytes));
  HOTPACK_NEED(cudaDeviceSynchronize());
  HOTPACK_NEED(cudaIpcCloseMemHandle(block));
  return 0;
}

}  // namespace

void RunSharing(Probe& probe) {
  Ipc(probe);
  DmaBuf(probe);
  OwnHandles(probe);
}

int RunSharingChild(const std::string& name) {
  if (name != "ipc_open") return -1;
  try {
    return OpenIpc();
  } catch (const CallFailed& failed) {
    fprintf(stderr, "gpu_probe --child %s: %s\n", name.c_str(), failed.what());
    return 3;
  }
}

}  // namespace hotpack::gpu
