// The small curves on terminals.
#include "tools/recording/load_curve.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "gtest/gtest.h"
#include "tests/tools/report_sample.h"

namespace hotpack {
namespace {

class Terminal {
 public:
  Terminal() {
    struct winsize size = {};
    size.ws_row = 24;
    size.ws_col = 60;
    EXPECT_EQ(openpty(&other_, &fd_, nullptr, nullptr, &size), 0);
  }
  ~Terminal() {
    close(fd_);
    close(other_);
  }
  int fd() const { return fd_; }

 private:
  int fd_ = -1, other_ = -1;
};

TEST(LoadCurveTest, EighthsOfTheLargestValue) {
  EXPECT_EQ(CurveText({0, 1, 2, 3, 4, 5, 6, 7, 8}, 20, 1, 0), " ▁▂▃▄▅▆▇█\n");
  EXPECT_EQ(CurveText({0, 4, 8, 12, 16}, 20, 2, 3), "      ▄█\n    ▄███\n");
  EXPECT_EQ(CurveText({}, 20, 2, 3), "");
  EXPECT_EQ(CurveText({0, 0}, 20, 1, 0), "  \n");
  EXPECT_EQ(CurveText({1, 1000}, 20, 1, 0), "▁█\n") << "what is live is seen";
}

TEST(LoadCurveTest, APeakSurvivesTheNarrowing) {
  std::vector<uint64_t> values(1000, 1);
  values[777] = 800;
  const std::string text = CurveText(values, 10, 1, 0);
  EXPECT_EQ(text, "▁▁▁▁▁▁▁█▁▁\n");
}

TEST(LoadCurveTest, OnlyOnTerminalsThatShowIt) {
  const Terminal terminal;
  setenv("TERM", "xterm", 1);
  setenv("LC_ALL", "C.UTF-8", 1);
  EXPECT_TRUE(ShowsCurves(terminal.fd()));
  EXPECT_EQ(CurveWidth(terminal.fd(), 15), 44u);
  setenv("LC_ALL", "C", 1);
  setenv("LANG", "en_US.UTF-8", 1);
  EXPECT_FALSE(ShowsCurves(terminal.fd())) << "LC_ALL decides";
  unsetenv("LC_ALL");
  unsetenv("LC_CTYPE");
  EXPECT_TRUE(ShowsCurves(terminal.fd()));
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(ShowsCurves(terminal.fd()));
  setenv("TERM", "xterm", 1);
  const int file = open("/dev/null", O_RDWR);
  EXPECT_FALSE(ShowsCurves(file));
  EXPECT_EQ(CurveWidth(file, 15), 64u);
  close(file);
}

TEST(LoadCurveTest, TheIterationsLoad) {
  const std::vector<uint64_t> load = LoadWorthShowing(hotpack_test::Sample().trace);
  ASSERT_EQ(load.size(), 8u);
  EXPECT_EQ(*std::max_element(load.begin(), load.end()), (10u << 20) + 700'416u);
}

}  // namespace
}  // namespace hotpack
