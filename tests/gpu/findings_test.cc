// The output of the probes is as their reader expects, at a normal and at an abnormal end.
#include "tests/gpu/findings.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "nlohmann/json.hpp"

namespace hotpack::gpu {
namespace {

using nlohmann::json;

struct Ended {
  std::string out;
  int status = 0;  // of waitpid
};

// Runs `body` in a child and collects its stdout.
Ended InChild(const std::function<void()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    body();
    _exit(0);
  }
  close(ends[1]);
  Ended ended;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(ends[0], buffer, sizeof buffer)) > 0) ended.out.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  waitpid(child, &ended.status, 0);
  return ended;
}

TEST(FindingsTest, TheObjectHasEveryKindOfResult) {
  Findings findings("p\"r\\o\n\x01g");
  findings.Pass("a.pass", "x", "y");
  findings.Fail("a.fail", "x", "y");
  findings.Differs("a.differs", "x", "y");
  findings.Skip("a.skip", "no device");
  EXPECT_TRUE(findings.Check(true, "a.check", "e", "s"));
  EXPECT_FALSE(findings.Fact(false, "a.fact", "e", "s"));
  const json object = json::parse(findings.Json());
  EXPECT_EQ(object["program"], "p\"r\\o\n\x01g");
  std::vector<std::string> results;
  for (const json& finding : object["findings"]) results.push_back(finding["result"]);
  EXPECT_EQ(results, (std::vector<std::string>{"pass", "fail", "differs", "skip", "pass", "differs"}));
  EXPECT_EQ(object["findings"][3]["seen"], "no device");
  EXPECT_EQ(object["findings"][1]["expected"], "x");
}

TEST(FindingsTest, OnlyAFailureIsAFailure) {
  Findings findings("p");
  findings.Differs("a", "x", "y");
  findings.Skip("b", "z");
  EXPECT_FALSE(findings.AnyFailed());
  findings.Check(false, "c", "x", "y");
  EXPECT_TRUE(findings.AnyFailed());
}

TEST(FindingsTest, AFigureHasItsMedianAndDeciles) {
  std::vector<double> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  const Figure hundred = check::Summarize("f", "ns", samples);
  EXPECT_EQ(hundred.median, 50.5);
  EXPECT_EQ(hundred.low, 10);
  EXPECT_EQ(hundred.high, 91);
  EXPECT_EQ(hundred.samples, 100u);
  const Figure three = check::Summarize("f", "ns", {3, 1, 2});
  EXPECT_EQ(three.median, 2);
  EXPECT_EQ(three.low, 1);
  EXPECT_EQ(three.high, 3);

  Findings findings("p");
  findings.AddFigure("none", "ns", {});
  findings.AddFigure("some", "bytes", {4, 8});
  const json figures = json::parse(findings.Json())["figures"];
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0],
            (json{{"name", "some"}, {"unit", "bytes"}, {"median", 6}, {"low", 4}, {"high", 8}, {"samples", 2}}));
}

TEST(FindingsTest, TheEndWritesOneObjectAndTellsTheStatus) {
  const Ended good = InChild([] {
    static Findings findings("p");
    findings.Guard(60);
    findings.Pass("a", "");
    _exit(findings.Finish());
  });
  EXPECT_EQ(WEXITSTATUS(good.status), 0);
  EXPECT_EQ(json::parse(good.out)["findings"].size(), 1u);
  const Ended bad = InChild([] {
    static Findings findings("p");
    findings.Fail("a", "", "");
    _exit(findings.Finish());
  });
  EXPECT_EQ(WEXITSTATUS(bad.status), 1);
  EXPECT_EQ(json::parse(bad.out)["findings"].size(), 1u);
}

TEST(FindingsTest, ASignalLosesNothing) {
  const Ended ended = InChild([] {
    static Findings findings("p");
    findings.Guard(60);
    findings.Pass("a.first", "");
    raise(SIGSEGV);
  });
  EXPECT_TRUE(WIFSIGNALED(ended.status));
  const json object = json::parse(ended.out);
  ASSERT_EQ(object["findings"].size(), 2u);
  EXPECT_EQ(object["findings"][0]["name"], "a.first");
  EXPECT_EQ(object["findings"][1]["name"], "finished");
  EXPECT_EQ(object["findings"][1]["result"], "fail");
}

TEST(FindingsTest, TheTimeLimitEndsTheProgram) {
  const Ended ended = InChild([] {
    static Findings findings("p");
    findings.Guard(1);
    findings.Pass("a.first", "");
    for (;;) pause();
  });
  ASSERT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 1);
  EXPECT_EQ(json::parse(ended.out)["findings"][1]["name"], "finished");
}

}  // namespace
}  // namespace hotpack::gpu
