// hotpack plan: its options, apart from its work. `hotpack` parses them and starts hotpack-remat, which parses them
// again and plans. So `hotpack` links no planner.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace hotpack {

// Links to the host by name: 10^9 bytes a second each way, four fifths of what their specifications have (PCI Express
// 4.0 and 5.0 with 16 lanes: 31.5 and 63; NVIDIA's Grace Hopper superchip: 450).
struct PlanLink {
  const char* name;
  double bandwidth;
};
inline constexpr PlanLink kPlanLinks[] = {{"pcie4", 25}, {"pcie5", 50}, {"nvlink-c2c", 360}};

// Of `hotpack plan` and `hotpack plan verify`.
struct PlanCommandOptions {
  std::string graph;
  std::string plan;  // of verify
  std::string budget;
  std::string algorithm = "auto";
  bool swap = false;
  double bandwidth = 12.0;  // 10^9 bytes a second
  std::string link;         // of kPlanLinks, instead of `bandwidth`; empty: none
  std::string host_memory;
  std::string time_limit = "10s";
  uint64_t seed = 1;
  std::string out;
  bool force = false;
  bool json = false;
  bool list = false;
  bool sweep = false;
  int points = 20;
  std::string plot;
  int slices = 16;  // of optimizers' updates; 0: whole
  std::string state = "auto";
};

// Of `hotpack plan export` and `hotpack plan solved`.
struct PlanModelOptions {
  std::string graph;
  std::string solution;  // of solved
  std::string budget;
  std::string format = "lp";
  bool relaxed = false;
  std::string out;
  bool force = false;
};

// What each of them does. Returns the exit code.
struct PlanActions {
  std::function<int(const PlanCommandOptions&)> plan;
  std::function<int(const PlanCommandOptions&)> verify;
  std::function<int(const PlanModelOptions&)> export_model;
  std::function<int(const PlanModelOptions&)> solved;
};

// Registers `plan` and its subcommands. The chosen one's result goes to *exit_code.
void AddPlanCommand(CLI::App& app, const PlanActions& actions, int* exit_code);

}  // namespace hotpack
