// A terminal of a test's own.
#pragma once

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace hotpack_test {

// Returns what `work` leaves on the terminal that is its standard output and stderr, in a child; *status of waitpid.
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

}  // namespace hotpack_test
