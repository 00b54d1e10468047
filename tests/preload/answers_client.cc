// A program that queries its memory, and one that runs out of it, on the simulated device:
//   answers_client SCENARIO WAY
// `answers` prints the results, in a form that does not depend on addresses, for comparison with a run without hotpack.
// The others end with status 0 if everything was as it should be.
#include "tests/preload/answers_client.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace {

// --- answers ---------------------------------------------------------------------------------------------------------

struct Attribute {
  CUpointer_attribute attribute;
  const char* name;
  size_t bytes;
};
const Attribute kAttributes[] = {
    {CU_POINTER_ATTRIBUTE_CONTEXT, "context", 8},
    {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, "memory_type", 4},
    {CU_POINTER_ATTRIBUTE_DEVICE_POINTER, "device_pointer", 8},
    {CU_POINTER_ATTRIBUTE_HOST_POINTER, "host_pointer", 8},
    {CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, "sync_memops", 4},
    {CU_POINTER_ATTRIBUTE_IS_MANAGED, "is_managed", 4},
    {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "device_ordinal", 4},
    {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, "ipc_capable", 4},
    {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, "range_start", 8},
    {CU_POINTER_ATTRIBUTE_RANGE_SIZE, "range_size", 8},
    {CU_POINTER_ATTRIBUTE_MAPPED, "mapped", 4},
    {CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, "handle_types", 8},
    {CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, "rdma_capable", 4},
    {CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, "access_flags", 4},
    {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, "mempool", 8},
    {CU_POINTER_ATTRIBUTE_MAPPING_SIZE, "mapping_size", 8},
    {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, "mapping_base", 8},
    {CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, "decompress_capable", 4},
    {CU_POINTER_ATTRIBUTE_P2P_TOKENS, "p2p_tokens", 16},
};

// A value as a number, an address as its distance from the block, handles by name.
void Print(const char* block, const Attribute& a, const char* how, CUresult result, const unsigned char* data,
           CUdeviceptr base, CUcontext context, CUmemoryPool pool) {
  uint64_t value = 0;
  memcpy(&value, data, std::min<size_t>(8, a.bytes));
  std::string text = std::to_string(value);
  if (result != CUDA_SUCCESS) {
    text = "error " + std::to_string(result);
  } else if (a.bytes == 8 && value != 0 && value - base < 64 * kMiB) {
    text = "block+" + std::to_string(value - base);
  } else if (value != 0 && value == reinterpret_cast<uint64_t>(context)) {
    text = "context";
  } else if (value != 0 && value == reinterpret_cast<uint64_t>(pool)) {
    text = "default pool";
  }
  printf("%s.%s.%s %s\n", block, a.name, how, text.c_str());
}

void Describe(const char* block, CUdeviceptr base, size_t offset, CUcontext context) {
  CUmemoryPool pool = nullptr;
  OK(api.DefaultPool(&pool, 0));
  constexpr unsigned kCount = sizeof(kAttributes) / sizeof(kAttributes[0]) - 1;  // the tokens are not of the list form
  unsigned char values[kCount][16] = {};
  CUpointer_attribute attributes[kCount];
  void* data[kCount];
  for (const Attribute& a : kAttributes) {
    unsigned char value[16] = {};
    const CUresult result = api.Attribute(value, a.attribute, base + offset);
    Print(block, a, "one", result, value, base, context, pool);
  }
  for (unsigned i = 0; i < kCount; ++i) {
    attributes[i] = kAttributes[i].attribute;
    data[i] = values[i];
    memset(values[i], 0xee, sizeof(values[i]));
  }
  const CUresult result = api.Attributes(kCount, attributes, data, base + offset);
  for (unsigned i = 0; i < kCount; ++i) {
    Print(block, kAttributes[i], "list", result, values[i], base, context, pool);
    for (size_t beyond = kAttributes[i].bytes; beyond < 16; ++beyond) CHECK(values[i][beyond] == 0xee);
  }
  CUmemGenericAllocationHandle handle = 0;
  printf("%s.retain %d\n", block, api.RetainHandle(&handle, reinterpret_cast<void*>(base + offset)));
}

uint64_t Number(CUdeviceptr address, CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_BUFFER_ID) {
  unsigned long long number = 0, again = 0;
  OK(api.Attribute(&number, attribute, address));
  void* data[] = {&again};
  OK(api.Attributes(1, &attribute, data, address));
  CHECK(number == again);
  return number;
}

void PrintFree(const char* name, size_t before) {
  printf("free.%s %lld MiB\n", name, (static_cast<long long>(before) - static_cast<long long>(Free())) / 1048576);
}

void Answers() {
  const CUcontext context = Start();
  size_t free = 0, total = 0;
  OK(api.GetInfo(&free, &total));
  printf("memory %zu of %zu MiB\n", free / kMiB, total / kMiB);
  const CUdeviceptr block = Alloc(6 * kMiB), pooled = AllocAsync(10 * kMiB), gone = Alloc(4 * kMiB);
  PrintFree("three_blocks", free);
  Describe("block", block, 0, context);
  Describe("inside", block, 5 * kMiB + 17, context);
  Describe("pool", pooled, 0, context);
  Describe("inside_pool", pooled, 9 * kMiB + 1, context);
  OK(api.Free(gone));
  Describe("released", gone, 0, context);
  Describe("nothing", 0x1000, 0, context);
  PrintFree("released", free);
  // The memory of one kind becomes that of the other.
  OK(api.Free(block));
  OK(api.FreeAsync(pooled, nullptr));
  OK(api.Synchronize());
  PrintFree("all_released", free);
  const CUdeviceptr second = AllocAsync(6 * kMiB), third = Alloc(10 * kMiB);
  Describe("second", second, 512, context);
  Describe("third", third, 1024, context);
  OK(api.Free(third));
  OK(api.FreeAsync(second, nullptr));
  CHECK(api.GetInfo(nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.Attribute(nullptr, CU_POINTER_ATTRIBUTE_BUFFER_ID, second) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.Attributes(1, nullptr, nullptr, second) == CUDA_ERROR_INVALID_VALUE);
}

// Every allocation has a number of its own, wherever it lies, also when an iteration is served by script.
void Numbers() {
  Start();
  std::vector<uint64_t> seen;
  const CUdeviceptr kept = Alloc(2 * kMiB);
  const uint64_t number = Number(kept + 99);
  for (int i = 0; i < 40; ++i) {
    std::vector<CUdeviceptr> blocks;
    for (int k = 1; k <= 12; ++k) blocks.push_back(k % 3 == 0 ? AllocAsync(k * 70000) : Alloc(k * 70000));
    for (size_t k = 0; k < blocks.size(); ++k) {
      const CUdeviceptr block = blocks[k];
      seen.push_back(Number(block));
      CHECK(Number(block + 69999) == seen.back());
      CHECK(Number(block, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID) ==
            Number(block + 69999, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID));
      CUmemoryPool pool = nullptr;
      OK(api.Attribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block + 1));
      CHECK((pool != nullptr) == ((k + 1) % 3 == 0));
    }
    for (CUdeviceptr block : blocks) OK(api.Free(block));
    CHECK(Number(kept) == number);
  }
  seen.push_back(number);
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
}

// --- other devices ---------------------------------------------------------------------------------------------------

unsigned AccessFlags(CUdeviceptr address) {
  unsigned flags = 77;
  OK(api.Attribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, address));
  return flags;
}

// Two devices. The first one's memory becomes accessible to the second, by either call.
void Peers(bool by_pool) {
  const CUcontext first = Start();
  CUcontext second = nullptr;
  const CUdeviceptr before = Alloc(3 * kMiB);
  CHECK(AccessFlags(before) == 3);
  OK(api.Retain(&second, 1));
  OK(api.SetCurrent(second));
  const CUdeviceptr own = Alloc(3 * kMiB);
  printf("before %u\n", AccessFlags(before));
  if (by_pool) {
    CUmemoryPool pool = nullptr;
    CUmemAccessDesc access = {};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {1}};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    OK(api.DefaultPool(&pool, 0));
    OK(api.PoolSetAccess(pool, &access, 1));
  } else {
    OK(api.EnablePeer(first, 0));
  }
  CHECK(AccessFlags(before) == 3 && AccessFlags(own) == 3);
  OK(api.SetCurrent(first));
  const CUdeviceptr after = Alloc(30 * kMiB);
  CHECK(AccessFlags(after) == 3 && AccessFlags(before) == 3);
  printf("of the other %u\n", AccessFlags(own));
  OK(api.SetCurrent(second));
  CHECK(AccessFlags(after + 29 * kMiB) == 3);
  for (CUdeviceptr block : {before, after, own}) OK(api.Free(block));
}
void PeersByContext() { Peers(false); }
void PeersByPool() { Peers(true); }

// --- memory for other processes --------------------------------------------------------------------------------------

void Ipc() {
  Start();
  CUipcMemHandle handle = {}, other = {};
  const CUdeviceptr first = Alloc(3 * kMiB - 100), pooled = AllocAsync(5 * kMiB), plain = Alloc(7 * kMiB);
  const CUresult result = api.IpcGet(&handle, first);
  printf("first %d\n", result);
  const CUdeviceptr second = Alloc(3 * kMiB);  // of the same size, in units of 512
  OK(api.IpcGet(&handle, second));
  unsigned capable = 0;
  OK(api.Attribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, second));
  CHECK(capable == 1);
  CHECK(api.IpcGet(&other, pooled) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.IpcGet(&other, plain + 512) != CUDA_SUCCESS);
  CHECK(api.IpcGet(&other, 0x1000) != CUDA_SUCCESS);
  for (CUdeviceptr block : {first, second, pooled, plain}) OK(api.Free(block));
  const CUdeviceptr again = Alloc(3 * kMiB);
  OK(api.IpcGet(&other, again));
  CHECK(memcmp(&handle, &other, sizeof(handle)) != 0);
  OK(api.Free(again));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  api = GetAnswersApi(argv[2]);
  const std::string scenario = argv[1];
  const std::pair<const char*, void (*)()> kScenarios[] = {{"answers", Answers},
                                                           {"numbers", Numbers},
                                                           {"fragments", Fragments},
                                                           {"trim", Trim},
                                                           {"retry", Retry},
                                                           {"retry_all", RetryAll},
                                                           {"out_of_memory", OutOfMemory},
                                                           {"out_of_memory_at_the_end", OutOfMemoryAtTheEnd},
                                                           {"out_of_memory_on_plan", OutOfMemoryOnPlan},
                                                           {"squeeze", Squeeze},
                                                           {"contexts", Contexts},
                                                           {"peers_by_context", PeersByContext},
                                                           {"peers_by_pool", PeersByPool},
                                                           {"capture", Capture},
                                                           {"ipc", Ipc}};
  for (const auto& [name, run] : kScenarios) {
    if (scenario != name) continue;
    run();
    return 0;
  }
  return 2;
}
