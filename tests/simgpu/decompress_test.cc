// The decompressors against the programs that compress: zstd and lz4.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "simgpu/driver/image.h"
#include "tests/support/subprocess.h"

namespace simgpu_test {
namespace {

using hotpack_test::ReadFile;

bool Have(const char* program) {
  return std::system((std::string("command -v ") + program + " >/dev/null").c_str()) == 0;
}

// Text-like, zero-rich, random or repeating bytes.
std::string MakeInput(int kind, size_t bytes, std::mt19937* random) {
  std::string text;
  while (text.size() < bytes) {
    switch (kind) {
      case 0:
        text += "ld.param.u64 %rd" + std::to_string((*random)() % 30) + ", [param_" + std::to_string((*random)() % 7) +
                "];\n";
        break;
      case 1:
        text += std::string((*random)() % 60, '\0') + static_cast<char>((*random)());
        break;
      case 2:
        text += static_cast<char>((*random)());
        break;
      case 3:
        text += static_cast<char>(__builtin_ctz((*random)() | 0x800000));
        break;
      default:
        text += text.size() > 40 && (*random)() % 3 != 0 ? text.substr((*random)() % (text.size() - 20), 20)
                                                         : std::string(1, static_cast<char>((*random)() % 64));
        break;
    }
  }
  text.resize(bytes);
  return text;
}

std::string Pack(const std::string& command, const std::string& input) {
  char path[] = "/tmp/simgpu_pack_XXXXXX";
  const int fd = mkstemp(path);
  close(fd);
  std::ofstream(path, std::ios::binary) << input;
  const std::string packed = std::string(path) + ".out";
  const int status = std::system((command + " <" + path + " >" + packed + " 2>/dev/null").c_str());
  const std::string result = status == 0 ? ReadFile(packed) : "";
  unlink(path);
  unlink(packed.c_str());
  return result;
}

TEST(Zstd, ReadsWhatZstdWrites) {
  if (!Have("zstd")) GTEST_SKIP() << "no zstd program";
  std::mt19937 random(20);
  for (const char* level : {"-1", "-3", "-9", "-19", "--fast=5"}) {
    for (int kind = 0; kind < 5; ++kind) {
      for (size_t bytes : {1u, 7u, 300u, 1500u, 20000u, 200000u}) {
        const std::string input = MakeInput(kind, bytes, &random);
        const std::string packed = Pack(std::string("zstd -c --no-check ") + level, input);
        ASSERT_FALSE(packed.empty());
        std::vector<char> out;
        ASSERT_TRUE(simgpu::DecompressZstd(reinterpret_cast<const uint8_t*>(packed.data()), packed.size(), bytes, &out))
            << "level " << level << " kind " << kind << " bytes " << bytes;
        ASSERT_EQ(std::string(out.begin(), out.end()), input)
            << "level " << level << " kind " << kind << " bytes " << bytes;
      }
    }
  }
}

// Damaged input is refused or gives other bytes, but never reads or writes outside (run under the address sanitizer).
TEST(Zstd, SurvivesDamage) {
  if (!Have("zstd")) GTEST_SKIP() << "no zstd program";
  std::mt19937 random(21);
  const std::string input = MakeInput(0, 20000, &random);
  const std::string packed = Pack("zstd -c --no-check -9", input);
  std::vector<char> out;
  for (size_t cut = 0; cut < packed.size(); cut += 7) {
    EXPECT_FALSE(simgpu::DecompressZstd(reinterpret_cast<const uint8_t*>(packed.data()), cut, input.size(), &out));
  }
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = packed;
    for (int flips = 0; flips < 3; ++flips) damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    simgpu::DecompressZstd(reinterpret_cast<const uint8_t*>(damaged.data()), damaged.size(), input.size(), &out);
    EXPECT_LE(out.size(), input.size());
  }
}

// A damaged length is refused, however much memory it asks for.
TEST(Zstd, RefusesOtherLengths) {
  if (!Have("zstd")) GTEST_SKIP() << "no zstd program";
  std::mt19937 random(23);
  const std::string input = MakeInput(4, 300000, &random);
  const std::string packed = Pack("zstd -c --no-check -3", input);
  const auto* data = reinterpret_cast<const uint8_t*>(packed.data());
  std::vector<char> out;
  for (const size_t expected : {size_t{0}, input.size() - 1, input.size() + 1, SIZE_MAX}) {
    EXPECT_FALSE(simgpu::DecompressZstd(data, packed.size(), expected, &out)) << expected;
  }
  EXPECT_TRUE(simgpu::DecompressZstd(data, packed.size(), input.size(), &out));
  EXPECT_FALSE(simgpu::DecompressZstd(data, 0, 0, &out));
}

// lz4 writes a frame: magic, descriptor, then blocks of 4-byte sizes. The block is what fat binaries hold.
TEST(Lz4, ReadsWhatLz4Writes) {
  if (!Have("lz4")) GTEST_SKIP() << "no lz4 program";
  std::mt19937 random(22);
  for (int kind = 0; kind < 5; ++kind) {
    for (size_t bytes : {300u, 20000u, 60000u}) {
      const std::string input = MakeInput(kind, bytes, &random);
      const std::string frame = Pack("lz4 -c --no-frame-crc -B4", input);
      ASSERT_GT(frame.size(), 15u);
      constexpr size_t kHeader = 7;
      uint32_t size = 0;
      memcpy(&size, frame.data() + kHeader, 4);
      if ((size & 0x80000000u) != 0) continue;  // stored
      std::vector<char> out;
      ASSERT_TRUE(
          simgpu::DecompressLz4(reinterpret_cast<const uint8_t*>(frame.data()) + kHeader + 4, size, bytes, &out));
      ASSERT_EQ(std::string(out.begin(), out.end()), input);
    }
  }
}

}  // namespace
}  // namespace simgpu_test
