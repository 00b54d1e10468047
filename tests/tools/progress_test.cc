// The line of progress, on a terminal of ours.
#include "tools/cli/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/on_terminal.h"

namespace {

using hotpack_test::OnTerminal;
using testing::HasSubstr;
using testing::MatchesRegex;

void Sleep(int milliseconds) { usleep(static_cast<useconds_t>(milliseconds) * 1000); }

TEST(Progress, AQuickThingSaysNothing) {
  int status = 0;
  EXPECT_EQ(OnTerminal([] { hotpack::Progress progress("reading a file", 10); }, &status), "");
}

TEST(Progress, ASlowOneSaysWhatAndHowFarAndIsGone) {
  int status = 0;
  const std::string seen = OnTerminal(
      [] {
        hotpack::Progress progress("reading a file", 200);
        progress.Reached(50);
        Sleep(1500);
      },
      &status);
  EXPECT_THAT(seen, MatchesRegex("(\r\x1b\\[Kreading a file: 25 %, 1 s)+\r\x1b\\[K"));
  const std::string no_total = OnTerminal(
      [] {
        const hotpack::Progress progress("packing");
        Sleep(1300);
      },
      &status);
  EXPECT_THAT(no_total, MatchesRegex("(\r\x1b\\[Kpacking: 1 s)+\r\x1b\\[K"));
}

TEST(Progress, ItStaysInItsLine) {
  int status = 0;
  const std::string seen = OnTerminal(
      [] {
        const hotpack::Progress progress(std::string(300, 'x'));
        Sleep(1300);
      },
      &status, 20);
  EXPECT_THAT(seen, MatchesRegex("(\r\x1b\\[Kx{19})+\r\x1b\\[K"));
}

TEST(Progress, ASignalClearsTheLine) {
  int status = 0;
  const std::string seen = OnTerminal(
      [] {
        const hotpack::Progress progress("reading");
        Sleep(1300);
        raise(SIGTERM);
      },
      &status);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_THAT(seen, MatchesRegex("(\r\x1b\\[Kreading: 1 s)+\r\x1b\\[K"));
}

TEST(Progress, NothingWhereStderrIsNoTerminal) {
  int status = 0;
  const std::string seen = OnTerminal(
      [] {
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        const hotpack::Progress progress("reading");
        Sleep(1300);
      },
      &status);
  EXPECT_EQ(seen, "");
}

}  // namespace
