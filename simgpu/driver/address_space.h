// Device addresses, and the bytes behind them.
//
// Device addresses are reserved without access, as with a discrete GPU: host code that follows a device pointer faults.
// The bytes are elsewhere (Backing), and exist only after a copy or a memset touched them.
#pragma once

#include <cstdint>
#include <map>

namespace simgpu {

inline constexpr uint64_t kPage = uint64_t{2} << 20;  // the device's page: granularity of physical memory

// Bytes of host memory, made at the first Data() and returned to the operating system at destruction. Once they are
// shared, they are a file's.
class Backing {
 public:
  explicit Backing(uint64_t bytes) : bytes_(bytes) {}
  ~Backing();
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;
  char* Data();                             // null: out of host memory
  char* Existing() const { return data_; }  // null: never touched, so all zero
  uint64_t bytes() const { return bytes_; }

  // Makes the bytes those of a file, which other processes can have too, and returns it: `name` appears in its path
  // below /proc. The same file each time; -1: out of host memory or of file descriptors.
  int Share(const char* name);
  // Makes the bytes those of an open file of at least as many. Takes the file. Returns false if that is not possible.
  bool Adopt(int file);

 private:
  int file_ = -1;
  char* data_ = nullptr;
  uint64_t bytes_;
};

// Reserve host addresses without access. 0: none left.
uint64_t ReserveAddresses(uint64_t bytes, uint64_t alignment, uint64_t wanted);
void ReleaseAddresses(uint64_t address, uint64_t bytes);

// Ranges in multiples of kPage, from large reservations that grow on demand. Best fit, coalescing; O(log ranges).
class AddressSpace {
 public:
  uint64_t Take(uint64_t bytes);  // 0: none left
  void Give(uint64_t address, uint64_t bytes);
  bool Owns(uint64_t address) const;  // taken or free

 private:
  std::map<uint64_t, uint64_t> free_;          // start → bytes
  std::multimap<uint64_t, uint64_t> by_size_;  // bytes → start
  std::map<uint64_t, uint64_t> regions_;       // start → bytes

  void Insert(uint64_t address, uint64_t bytes);
  void Remove(std::map<uint64_t, uint64_t>::iterator range);
};

}  // namespace simgpu
