// A Python with PyTorch, for the models of bench/torch.
#pragma once

#include <string>
#include <vector>

#include "tools/check/session.h"

namespace hotpack::check {

struct TorchPython {
  std::string path;                 // empty: there is none
  std::string reason;               // why
  std::string version;              // of PyTorch, and of the CUDA it is built for: "2.11.0, CUDA 13.0"
  std::vector<std::string> models;  // those of bench/torch
};

// $HOTPACK_TORCH_PYTHON, or torch-venv/bin/python beside bin/, or python3: the first that imports PyTorch. One built
// without CUDA is none, and on the simulated device one that is not for CUDA 13. Takes a minute for each at most.
TorchPython FindTorchPython(const Session& session, const std::string& torch_directory);

}  // namespace hotpack::check
