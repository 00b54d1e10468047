// The common part of preload_client's scenarios.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "tests/preload/client_api.h"

extern Api api;

using Scenarios = std::map<std::string, std::function<void()>>;
Scenarios StreamScenarios();  // preload_client_streams.cc

inline bool Ours(CUdeviceptr address) { return address >= 0x7000'0000'0000 && address < 0x8000'0000'0000; }

inline CUcontext Start(CUdevice device = 0) {
  CUcontext context = nullptr;
  OK(api.Init(0));
  OK(api.Retain(&context, device));
  OK(api.SetCurrent(context));
  return context;
}

inline CUdeviceptr Alloc(size_t bytes) {
  CUdeviceptr address = 0;
  OK(api.Alloc(&address, bytes));
  return address;
}

inline long Syncs() { return stub_count("cuCtxSynchronize") + stub_count("cuStreamSynchronize"); }
inline long Records() { return stub_count("cuEventRecord"); }
inline long Waits() { return stub_count("cuStreamWaitEvent"); }
