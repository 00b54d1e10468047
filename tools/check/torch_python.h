// A Python with PyTorch, for the models of bench/torch.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/check/session.h"

namespace hotpack::check {

struct TorchPython {
  std::string path;                 // empty: none
  std::string directory;            // bench/torch
  std::string reason;               // why there is none
  std::string version;              // of PyTorch, and of the CUDA version that it is built for: "2.11.0, CUDA 13.0"
  std::vector<std::string> models;  // of bench/torch
};

// Finds the first Python that imports PyTorch: $HOTPACK_TORCH_PYTHON, torch-venv/bin/python next to bin/, python3.
// Skips a PyTorch built without CUDA, and on the simulated device one that is not for CUDA 13. Takes at most a minute
// for each.
TorchPython FindTorchPython(const Session& session, const std::string& torch_directory);

// Returns the Python that the check's runs use, searched at the first call. The document has PYTHON in place of its
// path (Session::HidePath).
const TorchPython& TorchOf(Session& session);

// Returns the environment of PyTorch's runs in addition to that of Python: hotpack's place, and caches of compiled code
// that end with the check.
std::map<std::string, std::string> TorchEnvironment(const Session& session);

// Where a run of train.py writes: its document, and its losses (losses.h).
struct TrainingFiles {
  std::string document;
  std::string losses;
};

// Returns a run of train.py, without a name. `allocator`: as train.py names it. Removes the files of the run before.
Job TrainingJob(const Session& session, const TorchPython& python, const std::string& model,
                const std::string& allocator, TrainingFiles* files);

}  // namespace hotpack::check
