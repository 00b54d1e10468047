// `hotpack doctor` and `hotpack record`, from the outside, on the simulated device.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/subprocess.h"
#include "tests/tools/command_folder.h"

namespace {

using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

const std::string kLstm = HOTPACK_SOURCE_DIR "/tests/data/lstm.csv";

using Environment = std::map<std::string, std::string>;

Outcome Hotpack(std::vector<std::string> arguments, Environment more = {}) {
  arguments.insert(arguments.begin(), HOTPACK_COMMAND);
  more.insert({{"LD_PRELOAD", ""}, {"LD_LIBRARY_PATH", ""}, {"HOTPACK", ""}});
  return hotpack_test::RunProgram(arguments, more);
}

class WithDevice : public hotpack_test::CommandFolder {
 protected:
  void SetUp() override {
    if (!fs::exists(HOTPACK_BINARY_DIR "/lib/simgpu/libcudart.so.13")) GTEST_SKIP() << "no simulated device was built";
  }
};

class Doctor : public WithDevice {
 protected:
  // Of a program on the simulated device. `code`: of the doctor.
  static json Look(int code, const std::vector<std::string>& program, const Environment& more = {}) {
    std::vector<std::string> arguments = {"doctor", "--simulate", "--json", "--"};
    arguments.insert(arguments.end(), program.begin(), program.end());
    const Outcome outcome = Hotpack(arguments, more);
    EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
  static std::vector<std::string> Sentences(const json& found, const char* list) {
    return found[list].get<std::vector<std::string>>();
  }
  static auto Contains(const std::string& text) { return testing::Contains(HasSubstr(text)); }
};

TEST_F(Doctor, AProgramThatIsServed) {
  const json found = Look(0, {HOTPACK_COMMAND, "replay", kLstm, "--repeat", "3"});
  EXPECT_EQ(found["to_do"], json::array());
  EXPECT_EQ(found["machine"]["simulated"], true);
  EXPECT_GE(found["machine"]["driver_version"], 12000);
  EXPECT_EQ(found["machine"]["devices"][0]["virtual_memory"], true);
  EXPECT_EQ(found["exit_code"], 0);
  EXPECT_EQ(found["without_hotpack"], json::array());
  ASSERT_EQ(found["processes"].size(), 1u);
  const json& process = found["processes"][0];
  EXPECT_EQ(process["requests"], 4 * 345 + 2 * 345);  // three marked steps, and three more
  EXPECT_EQ(process["passed_through"], 0);
  EXPECT_GT(process["hooks_in_driver"], 100);
  EXPECT_EQ(process["unknown_variants"], json::array());
  ASSERT_FALSE(process["libraries"].empty());
  uint64_t hooked = 0;
  for (const json& library : process["libraries"]) hooked += library["hooked"].get<uint64_t>();
  EXPECT_GT(hooked, 0u);
}

TEST_F(Doctor, ThePrintedFormSaysTheSame) {
  const Outcome outcome = Hotpack(
      {"doctor", "--simulate", "--", "sh", "-c", "echo out; exec \"$0\" replay \"$1\"", HOTPACK_COMMAND, kLstm});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("driver       simulated, CUDA "));
  EXPECT_THAT(outcome.out, HasSubstr("  requests   1035 served, "));
  EXPECT_THAT(outcome.out, testing::EndsWith("to do        nothing: hotpack serves this program\n"));
  EXPECT_THAT(outcome.err, StartsWith("out\n")) << "what the program prints is not in the report";
}

TEST_F(Doctor, TheMachineAlone) {
  const Outcome outcome = Hotpack({"doctor", "--simulate"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("virtual memory management: yes"));
  if (fs::exists("/proc/driver/nvidia")) GTEST_SKIP() << "there is a driver";
  const Outcome none = Hotpack({"doctor"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.out, HasSubstr("to do        There is no NVIDIA driver here"));
}

TEST_F(Doctor, Variables) {
  const std::vector<std::string> program = {HOTPACK_COMMAND, "replay", kLstm};
  const json off = Look(1, program, {{"HOTPACK", "0"}});
  EXPECT_THAT(Sentences(off, "to_do"), Contains("HOTPACK=0 is set, so nothing is served"));
  EXPECT_THAT(Sentences(off, "to_do"), Contains("is left alone"));
  EXPECT_EQ(off["processes"][0]["requests"], 0);
  const std::string wrong = std::string("HOTPACK_") + "TRASE";
  EXPECT_THAT(Sentences(Look(1, program, {{wrong, "x"}}), "to_do"),
              Contains(wrong + " is no variable of hotpack's: is HOTPACK_TRACE meant?"));
  EXPECT_THAT(Sentences(Look(1, program, {{"PYTORCH_NO_CUDA_MEMORY_CACHING", "0"}}), "to_do"),
              Contains("keeps PyTorch's own caching"));
  const json noted =
      Look(0, program, {{"PYTORCH_ALLOC_CONF", "expandable_segments:True"}, {"NVTX_INJECTION64_PATH", "/nowhere.so"}});
  EXPECT_THAT(Sentences(noted, "notes"), Contains("PYTORCH_ALLOC_CONF is set"));
  EXPECT_THAT(Sentences(noted, "notes"), Contains("NVTX_INJECTION64_PATH is set"));
  EXPECT_EQ(noted["environment"]["PYTORCH_ALLOC_CONF"], "expandable_segments:True");
  EXPECT_FALSE(noted["environment"].contains("HOTPACK_DOCTOR")) << "what hotpack sets itself is not the user's";
}

TEST_F(Doctor, WhatPassesHotpackBy) {
  const std::string client = HOTPACK_DOCTOR_CLIENT;
  EXPECT_THAT(Sentences(Look(1, {client}), "to_do"), Contains("No process asked for device memory"));
  EXPECT_THAT(Sentences(Look(1, {"true"}), "to_do"), Contains("No process asked for device memory"));
  const json first = Look(1, {client, "first"});
  EXPECT_EQ(first["processes"][0]["unknown_variants"], json::array({"cuMemAlloc"}));
  const json deep = Look(1, {client, "deepbind"});
  EXPECT_EQ(deep["processes"][0]["deepbind"], true);
  EXPECT_THAT(Sentences(deep, "notes"), Contains("RTLD_DEEPBIND"));
  const json& libraries = deep["processes"][0]["libraries"];
  uint64_t looked_up = 0, hooked = 0;  // cuInit and cuMemAlloc_v2, one of them by way of the simulated device's witness
  for (const json& library : libraries) {
    looked_up += library["looked_up"].get<uint64_t>();
    hooked += library["hooked"].get<uint64_t>();
  }
  EXPECT_EQ(looked_up, 2u) << libraries.dump(2);
  EXPECT_EQ(hooked, 1u) << libraries.dump(2);
  EXPECT_EQ(deep["processes"][0]["hooks_looked_up"], 1);
  const json twice = Look(1, {client, "namespace"});
  EXPECT_THAT(Sentences(twice, "to_do"), Contains("libcuda.so.1 loaded twice")) << twice.dump(2);
  EXPECT_THAT(Sentences(Look(1, {client, "deepbind"}), "to_do"), testing::Not(Contains("loaded twice")));
  const json alone = Look(1, {client, "alone"});
  ASSERT_EQ(alone["without_hotpack"].size(), 1u) << alone.dump(2);
  EXPECT_EQ(alone["without_hotpack"][0]["program"].get<std::string>(), fs::canonical(client).string());
  EXPECT_THAT(Sentences(alone, "to_do"), Contains("has the driver and not hotpack"));
}

TEST_F(Doctor, Executables) {
  if (fs::exists(HOTPACK_STATIC_PROGRAM)) {
    const json found = Look(1, {HOTPACK_STATIC_PROGRAM});
    EXPECT_EQ(found["program"]["static"], true);
    EXPECT_THAT(Sentences(found, "to_do"), Contains("is linked fully statically"));
    EXPECT_EQ(found["processes"], json::array());
  }
  const json script = Look(1, {"sh", "-c", "exit 3"});
  EXPECT_EQ(script["exit_code"], 3);
  EXPECT_THAT(Sentences(script, "to_do"), Contains("exit code 3"));
  std::ofstream(Path("job")) << "#!/usr/bin/env sh\nexec \"" << HOTPACK_COMMAND << "\" replay \"" << kLstm << "\"\n";
  chmod(Path("job").c_str(), 0755);
  const json found = Look(0, {Path("job")});
  EXPECT_THAT(found["program"]["interpreter"].get<std::string>(), testing::EndsWith("/sh"));
  EXPECT_EQ(found["program"]["static"], false);
  constexpr uid_t kUnknown = 65534;
  fs::copy("/bin/true", Path("other"));
  if (getuid() == 0 && chown(Path("other").c_str(), kUnknown, 0) == 0 && chmod(Path("other").c_str(), 04755) == 0) {
    const json other = Look(1, {Path("other")});
    EXPECT_EQ(other["program"]["privileged"], true);
    EXPECT_THAT(Sentences(other, "to_do"), Contains("ignores LD_PRELOAD"));
  }
}

TEST_F(Doctor, NothingIsLeft) {
  Hotpack({"doctor", "--simulate", "--", HOTPACK_COMMAND, "replay", kLstm}, {{"TMPDIR", folder_.path()}});
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

class Record : public WithDevice {
 protected:
  std::string Csv(const std::string& trace) const {
    return Hotpack({"import", trace, "--format", "trace", "-o", "-"}).out;
  }
};

// The requests of a program that hotpack serves are those of one that it only looks at.
TEST_F(Record, TheSameAsWhenServed) {
  for (const char* api : {"malloc", "async", "driver"}) {
    const std::vector<std::string> program = {
        "--",  HOTPACK_COMMAND, "replay", HOTPACK_SOURCE_DIR "/tests/data/cnn-carried.csv", "--repeat", "2", "--marks",
        "api", "--api",         api};
    const auto with = [&](std::vector<std::string> first) {
      first.insert(first.end(), program.begin(), program.end());
      return Hotpack(first);
    };
    const std::string recorded = Path(std::string(api) + ".trace"), served = Path(std::string(api) + "-served.trace");
    const Outcome outcome = with({"record", "--simulate", "-o", recorded});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "hotpack record: 270 requests, live peak 5.9 MiB. Next: hotpack show " + recorded + "\n");
    ASSERT_EQ(with({"run", "--simulate", "--trace", served}).code, 0);
    for (const std::string& trace : {recorded, served}) {
      ASSERT_EQ(Hotpack({"import", trace, "-o", trace + ".csv"}).code, 0);
    }
    EXPECT_EQ(ReadFile(recorded + ".csv"), ReadFile(served + ".csv")) << api;
    const json of_recorded = json::parse(Hotpack({"show", recorded, "--json"}).out),
               of_served = json::parse(Hotpack({"show", served, "--json"}).out);
    for (const char* figure :
         {"events", "requests", "releases", "marks", "bytes", "live_peak", "live_end", "streams", "async_requests"}) {
      EXPECT_EQ(of_recorded[figure], of_served[figure]) << figure << " " << api;
    }
    EXPECT_EQ(of_recorded["end"], "closed");
  }
}

TEST_F(Record, NothingIsServed) {
  const Outcome outcome =
      Hotpack({"run", "--simulate", "--json-stats", Path("json"), "--", HOTPACK_COMMAND, "replay", kLstm},
              {{"HOTPACK", "record"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const json stats = json::parse(ReadFile(Path("json")));
  EXPECT_EQ(stats["requests"], 0);
  EXPECT_EQ(stats["passed_through"], 1035);
  EXPECT_EQ(stats["reserved_peak"], 0);
  EXPECT_EQ(stats["checker_reports"], 0);
}

TEST_F(Record, SeveralProcesses) {
  const std::string trace = Path("job.trace");
  const Outcome outcome = Hotpack({"record", "--simulate", "-o", trace, "--", "sh", "-c",
                                   "\"$0\" replay \"$1\" && \"$0\" replay \"$1\"; exit 4", HOTPACK_COMMAND, kLstm});
  EXPECT_EQ(outcome.code, 4) << "the program's";
  EXPECT_THAT(outcome.err,
              HasSubstr("2070 requests, live peak 10.7 MiB, of 2 processes (" + trace + ", " + trace + ".PROCESS)"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), {}), 2);
}

TEST_F(Record, NothingToRecord) {
  const Outcome outcome = Hotpack({"record", "--simulate", "-o", Path("job.trace"), "--", "true"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "hotpack record: no process asked for device memory: nothing is recorded\n");
  EXPECT_FALSE(fs::exists(Path("job.trace")));
}

// Its end is written to its beginning, and a process that asked how it ended would wait for a writer.
TEST_F(Record, APipeIsRefused) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const Outcome outcome = Hotpack({"record", "--simulate", "-o", Path("pipe"), "--", "touch", Path("ran")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "hotpack record: --out " + Path("pipe") + ": is no regular file, and a recording needs one\n");
  EXPECT_FALSE(fs::exists(Path("ran")));
}

}  // namespace
