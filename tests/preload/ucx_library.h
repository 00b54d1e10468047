// The interface of the test's UCX.
#pragma once

#define UCX_EXPORT extern "C" __attribute__((visibility("default")))

// What a registration of a block finds out.
struct UctRegistration {
  unsigned memory_type, managed, legacy_ipc;
  int device;
  unsigned long long handle_types;
  unsigned long long base, bytes;
  int dma_buf;  // the driver's result
  int retain;   // the same, of the question for a handle of mapped memory
};

// The ways to a block for another process of this machine. kNone: by copies through the host.
enum class UctWay { kNone, kLegacy, kFabric, kPool };

struct UctKey {
  UctWay way;
  unsigned long long base, bytes, buffer;
};

// Each returns the driver's first error that ends the call; 0: none.
UCX_EXPORT int UctRegister(unsigned long long address, unsigned long long bytes, UctRegistration* result);
UCX_EXPORT int UctExport(unsigned long long address, UctKey* key);
// Makes a staging buffer and exports it.
UCX_EXPORT int UctStage(unsigned long long bytes, UctKey* key);
// Signals by a value in the block that its work is done, and waits for that on the stream.
UCX_EXPORT int UctSignal(void* stream, unsigned long long address);

// The program's calls, seen by the memory hooks: the range that the program is about to give back.
UCX_EXPORT int UcmAllocate(unsigned long long* address, unsigned long long bytes);
UCX_EXPORT int UcmFree(unsigned long long address, unsigned long long* base, unsigned long long* bytes);
