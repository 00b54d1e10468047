// Tests are compiled by clang where it is there (hotpack_by_clang), and nothing of clang gets into what is shipped.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace hotpack {
namespace {

// Whether the file has something that clang compiled. Each compiler leaves its name in what it makes.
bool NamesClang(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return bytes.find(std::string("clang ") + "version ") != std::string::npos;
}

TEST(CompilersTest, TestsAreCompiledByClangWhereItIsThere) {
#ifdef __clang__
  EXPECT_TRUE(HOTPACK_BY_CLANG);
#else
  EXPECT_FALSE(HOTPACK_BY_CLANG);
#endif
  EXPECT_EQ(NamesClang("/proc/self/exe"), HOTPACK_BY_CLANG);
}

TEST(CompilersTest, NothingOfClangIsShipped) {
  std::istringstream shipped(HOTPACK_SHIPPED);
  int files = 0;
  for (std::string path; std::getline(shipped, path, '|'); ++files) EXPECT_FALSE(NamesClang(path)) << path;
  EXPECT_GT(files, 3);
}

}  // namespace
}  // namespace hotpack
