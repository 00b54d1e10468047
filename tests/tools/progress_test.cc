// The line of progress, on a terminal of ours.
#include "tools/cli/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// What `work` leaves on the terminal that is its stderr, in a child; *status of waitpid.
template <typename Work>
std::string OnTerminal(Work work, int* status, unsigned short columns = 80) {
  int terminal = -1;
  winsize size = {24, columns, 0, 0};
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    work();
    _exit(0);
  }
  std::string seen;
  char piece[4096];
  for (ssize_t got; (got = read(terminal, piece, sizeof(piece))) > 0;) seen.append(piece, static_cast<size_t>(got));
  waitpid(child, status, 0);
  close(terminal);
  return seen;
}

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
