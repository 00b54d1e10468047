#include <dlfcn.h>
#include <gtest/gtest.h>

namespace {

TEST(LinkTest, ThePackerWorksWithinASharedLibrary) {
  void* const library = dlopen(HOTPACK_LINK_CHECK_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto* const height = reinterpret_cast<long long (*)()>(dlsym(library, "HotpackLinkCheckHeight"));
  ASSERT_NE(height, nullptr);
  EXPECT_EQ(height(), 42);
  dlclose(library);
}

}  // namespace
