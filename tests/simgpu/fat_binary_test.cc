// Which parts of a fat binary the simulated device reads: what a driver would load for its compute capability.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/simgpu/driver_fixture.h"

namespace simgpu_test {
namespace {

template <class T>
void Put(std::string* to, size_t offset, T value) {
  memcpy(to->data() + offset, &value, sizeof value);
}

// An ELF image without kernels.
std::string Readable() {
  Elf64_Ehdr header = {};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

// With an unreadable part, the kernels are not known, and any name may be one.
std::string Unreadable() { return std::string(64, 'x'); }

constexpr uint16_t kPtx = 1, kElf = 2;

std::string Entry(uint16_t kind, uint32_t capability, std::string payload) {
  payload.resize((payload.size() + 7) / 8 * 8);
  std::string header(64, '\0');
  Put<uint16_t>(&header, 0, kind);
  Put<uint32_t>(&header, 4, 64);
  Put<uint64_t>(&header, 8, payload.size());
  Put<uint32_t>(&header, 28, capability);
  return header + payload;
}

class FatBinaryTest : public DriverTest {
 protected:
  static bool Has(const char* kernel, const std::string& entries) {
    std::string fat(16, '\0');
    Put<uint32_t>(&fat, 0, 0xBA55ED50);
    Put<uint16_t>(&fat, 4, 1);
    Put<uint16_t>(&fat, 6, 16);
    Put<uint64_t>(&fat, 8, entries.size());
    fat += entries;
    CUlibrary library = nullptr;
    EXPECT_EQ(cuLibraryLoadData(&library, fat.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);
    CUkernel found = nullptr;
    const CUresult status = cuLibraryGetKernel(&found, library, kernel);
    EXPECT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
    return status == CUDA_SUCCESS;
  }
};

TEST_F(FatBinaryTest, ReadsTheCodeForTheDevice) {
  for (const uint32_t other : {75, 80, 89, 100, 120}) {
    EXPECT_FALSE(Has("k", Entry(kElf, other, Unreadable()) + Entry(kElf, 90, Readable()))) << other;
    EXPECT_FALSE(Has("k", Entry(kElf, 90, Readable()) + Entry(kElf, other, Unreadable()))) << other;
  }
  EXPECT_TRUE(Has("k", Entry(kElf, 90, Unreadable())));
}

TEST_F(FatBinaryTest, ReadsAllVariantsOfIt) {
  EXPECT_TRUE(Has("k", Entry(kElf, 90, Readable()) + Entry(kElf, 80, Readable()) + Entry(kElf, 90, Unreadable())));
}

TEST_F(FatBinaryTest, ReadsAllWithoutCodeForTheDevice) {
  EXPECT_TRUE(Has("k", Entry(kElf, 100, Readable()) + Entry(kElf, 80, Unreadable())));
  const std::string text = ".version 8.0\n.target sm_80\n.visible .entry k(.param .u64 a)\n{\n}\n";
  EXPECT_TRUE(Has("k", Entry(kPtx, 80, text)));
  EXPECT_FALSE(Has("other", Entry(kElf, 80, Readable()) + Entry(kPtx, 80, text)));
}

}  // namespace
}  // namespace simgpu_test
