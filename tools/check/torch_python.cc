#include "tools/check/torch_python.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

namespace hotpack::check {
namespace {

// Prints the version of PyTorch, that of CUDA, and the models, one per line.
constexpr char kQuestion[] =
    "import sys, torch\n"
    "print(torch.__version__, torch.version.cuda, sep='\\n')\n"
    "sys.path.insert(0, sys.argv[1])\n"
    "from models import TASKS\n"
    "print(*TASKS, sep='\\n')";
constexpr char kSimulatedCuda[] = "13.";  // the simulated runtime is libcudart.so.13

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TorchPython FindTorchPython(const Session& session, const std::string& torch_directory) {
  const char* named = getenv("HOTPACK_TORCH_PYTHON");
  std::vector<std::string> candidates;
  if (named != nullptr && *named != '\0') {
    candidates = {named};
  } else {
    candidates = {session.kit().root + "/torch-venv/bin/python", "python3"};
  }
  TorchPython found;
  found.reason = "no Python here imports PyTorch (HOTPACK_TORCH_PYTHON names one)";
  for (const std::string& path : candidates) {
    const Outcome outcome = RunChild({path, "-c", kQuestion, torch_directory}, PythonEnvironment(session.kit(), false),
                                     std::clamp(session.SecondsLeft(), 1.0, 60.0), session.scratch());
    std::vector<std::string> lines = Lines(outcome.out);
    if (outcome.timed_out) found.reason = "importing PyTorch was not over in time";
    if (outcome.code != 0 || lines.size() < 3) continue;
    found.version = lines[0] + ", CUDA " + lines[1];
    if (lines[1] == "None") {
      found.reason = "PyTorch " + lines[0] + " is built without CUDA";
    } else if (session.simulated() && lines[1].rfind(kSimulatedCuda, 0) != 0) {
      found.reason = "the simulated device is for CUDA 13, and this PyTorch for " + lines[1];
    } else {
      found.path = path;
      found.models.assign(lines.begin() + 2, lines.end());
    }
    break;
  }
  return found;
}

const TorchPython& TorchOf(Session& session) {
  if (session.torch != nullptr) return *session.torch;
  const std::string directory = session.kit().TorchDirectory();
  auto found = std::make_shared<TorchPython>();
  if (directory.empty()) {
    found->reason = "bench/torch is not here";
  } else {
    *found = FindTorchPython(session, directory);
    found->directory = directory;
  }
  if (!found->path.empty()) session.HidePath(found->path, "PYTHON");
  session.torch = found;
  return *session.torch;
}

std::map<std::string, std::string> TorchEnvironment(const Session& session) {
  std::map<std::string, std::string> environment = {
      // The kit's root, in a form that the document shortens, so that it does not show this machine's path.
      {"HOTPACK_HOME", session.kit().root + "/."},
      {"TORCHINDUCTOR_CACHE_DIR", session.scratch() + "/inductor"},
      {"TRITON_CACHE_DIR", session.scratch() + "/triton"}};
  if (session.simulated()) environment["SIMGPU_MEMORY"] = "80G";
  return environment;
}

Job TrainingJob(const Session& session, const TorchPython& python, const std::string& model,
                const std::string& allocator, TrainingFiles* files) {
  *files = {session.scratch() + "/train.json", session.scratch() + "/losses"};
  for (const std::string& file : {files->document, files->losses}) {
    std::error_code error;
    std::filesystem::remove(file, error);
  }
  Job job;
  job.command = {python.path,
                 python.directory + "/train.py",
                 model,
                 "--allocator",
                 allocator,
                 "--json",
                 files->document,
                 "--losses",
                 files->losses,
                 "--steps",
                 session.tiny() ? "8" : "50",
                 "--warm-up",
                 session.tiny() ? "4" : "20"};
  if (session.tiny()) job.command.push_back("--tiny");
  job.hotpack = allocator == "preload";
  job.python = true;
  job.environment = TorchEnvironment(session);
  job.limit = session.full() ? 600 : 120;
  return job;
}

}  // namespace hotpack::check
