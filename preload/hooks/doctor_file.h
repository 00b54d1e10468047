// What a process reports about itself for `hotpack doctor`. The file is mapped shared, so it survives any end of the
// process.
//
//   <HOTPACK_DOCTOR>/doctor.<pid>    one DoctorFile
//
// Written by preload/hooks/doctor.cc, read by tools/doctor/doctor_facts.cc. Both are of one build, so only one version
// of the format is read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hotpack {

inline constexpr uint64_t kDoctorMagic = 0x31544344'4b504f48;  // "HOPKDCT1", little endian
inline constexpr size_t kDoctorHooks = 256;
inline constexpr size_t kDoctorUnhooked = 1024;
inline constexpr size_t kDoctorLibraries = 64;

// A function of the driver that hotpack hooks.
struct DoctorHook {
  char symbol[48];
  std::atomic<uint8_t> in_driver;   // the driver has it
  std::atomic<uint32_t> looked_up;  // look-ups that got hotpack's function
  std::atomic<uint64_t> handed_on;  // calls that were left to the driver
};

// A function that was looked up and not replaced. `hooked_base`: hotpack hooks the name, but the driver's answer is a
// variant that it does not know.
struct DoctorName {
  std::atomic<uint8_t> taken;
  std::atomic<uint8_t> hooked_base;
  char name[46];
};

// A library of the process that looked up functions of the driver.
struct DoctorLibrary {
  std::atomic<uint8_t> taken;
  std::atomic<uint32_t> looked_up;
  std::atomic<uint32_t> hooked;  // of these, answered with hotpack's functions
  char path[248];
};

struct DoctorFile {
  std::atomic<uint64_t> magic;  // kDoctorMagic, written last
  int32_t pid;
  std::atomic<uint8_t> enabled;   // hotpack serves in this process, or would
  std::atomic<uint8_t> driver;    // the driver library was found
  std::atomic<uint8_t> deepbind;  // RTLD_DEEPBIND was removed from a dlopen
  std::atomic<uint8_t> full;      // one of the tables was too small
  char program[256];              // /proc/self/exe
  DoctorHook hooks[kDoctorHooks];
  DoctorName unhooked[kDoctorUnhooked];
  DoctorLibrary libraries[kDoctorLibraries];
  // Lines of /proc/self/maps with offset 0 and the name of a shared library, when the driver was first found and again
  // at the end. A library that is mapped twice is loaded twice.
  std::atomic<uint32_t> mapped_bytes;
  char mapped[1 << 16];
};

}  // namespace hotpack
