// exit() in a signal handler that interrupted a request: the handler's thread holds the engine's lock, and functions
// that run at exit must not wait for it forever.
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "gtest/gtest.h"
#include "runtime/engine/engine.h"
#include "tests/runtime/fake_device_memory.h"

namespace hotpack {
namespace {

Engine* at_exit = nullptr;

void FinishAndExit(int) {
  at_exit->Finish();
  _exit(0);
}

[[noreturn]] void RequestsUntilTheSignal(int microseconds) {
  FakeDeviceMemory device;
  Engine engine(&device, {});
  at_exit = &engine;
  signal(SIGALRM, FinishAndExit);
  DeviceAddress address = 0;
  engine.Allocate(4096, 0, &address);  // the arena is there
  engine.Release(address, 0);
  const itimerval timer = {{0, 0}, {0, microseconds}};
  setitimer(ITIMER_REAL, &timer, nullptr);
  while (true) {
    engine.Allocate(4096, 0, &address);
    engine.Release(address, 0);
  }
}

TEST(EngineExit, InAHandlerInTheMiddleOfARequest) {
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) RequestsUntilTheSignal(2000 + 137 * round);
    int status = -1;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) kill(child, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the process did not end";
  }
}

}  // namespace
}  // namespace hotpack
