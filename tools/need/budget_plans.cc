#include "tools/need/budget_plans.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "nlohmann/json.hpp"
#include "tools/cli/child_process.h"
#include "tools/cli/plan_program.h"
#include "tools/need/read_text.h"
#include "tools/run/run_program.h"

namespace hotpack {
namespace {

using Json = nlohmann::json;

constexpr const char* kTimeLimit = "2s";

// A planner at work on one budget.
struct Planning {
  BudgetPlan plan;
  std::string out;  // the file of what it prints
  pid_t pid = -1;
};

std::vector<BudgetPlan> BudgetsOf(uint64_t whole, uint64_t to_fit) {
  std::vector<BudgetPlan> budgets;
  if (to_fit > 0 && to_fit < whole) {
    BudgetPlan own;
    own.percent = static_cast<int>(to_fit * 100 / whole);
    own.budget = to_fit;
    own.to_fit = true;
    budgets.push_back(own);
  }
  for (const int percent : kBudgetPercents) {
    BudgetPlan part;
    part.percent = percent;
    part.budget = whole * static_cast<uint64_t>(percent) / 100;
    budgets.push_back(part);
  }
  return budgets;
}

bool EndsWell(pid_t pid) {
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid && ExitCode(status) == 0;
}

}  // namespace

bool ReadBudgetPlan(const std::string& printed, BudgetPlan* plan) {
  const Json object = Json::parse(printed, nullptr, false);
  if (!object.is_object() || object.value("baseline_time", uint64_t{0}) == 0) return false;
  plan->found = true;
  plan->time_ratio = object.value("time", 0.0) / object.value("baseline_time", 1.0);
  plan->arena = object.value("arena", uint64_t{0});
  plan->again = object.value("recomputed", uint64_t{0});
  plan->copied = object.value("swapped", uint64_t{0});
  plan->host_peak = object.value("host_peak", uint64_t{0});
  const Json places = object.value("again", Json::array());
  if (!places.empty()) plan->longest_again = places.front().value("operator", std::string());
  return true;
}

BudgetPlans PlanBudgets(const std::string& graph, uint64_t whole, uint64_t outside, uint64_t to_fit) {
  BudgetPlans answer;
  const std::string program = PlanProgram();
  const TemporaryDirectory directory;
  std::error_code error;
  if (graph.empty() || directory.path().empty() || !std::filesystem::exists(program, error)) return answer;
  const std::string path = directory.path() + "/graph.json";
  if (std::ofstream file(path, std::ios::binary); !(file << graph).flush()) return answer;
  const Json written = Json::parse(graph, nullptr, false);
  if (!written.is_object()) return answer;
  answer.costs = written.value("costs", std::string());
  std::vector<Planning> all;  // side by side
  for (const BudgetPlan& plan : BudgetsOf(whole, to_fit)) {
    Planning one;
    one.plan = plan;
    one.plan.outside = outside > plan.budget ? outside : 0;
    one.out = directory.path() + "/plan." + std::to_string(all.size());
    if (one.plan.outside == 0) one.pid = fork();
    if (one.pid == 0) {
      Execute({program, "plan", path, "--budget", std::to_string(plan.budget), "--swap", "--time-limit", kTimeLimit,
               "--json"},
              {}, one.out, one.out + ".errors");
    }
    all.push_back(std::move(one));
  }
  for (Planning& one : all) {
    if (EndsWell(one.pid)) ReadBudgetPlan(ReadText(one.out), &one.plan);
    answer.plans.push_back(std::move(one.plan));
  }
  return answer;
}

}  // namespace hotpack
