// The planners of `hotpack plan`: one row each. Names, options, help, `auto`, sweeps and dispatch follow from the row.
// A planner defines PlanWith<Planner>(), a PlannerFunction (remat/core/planner_input.h).
#pragma once

namespace hotpack::remat {

// X(Planner, name, in_auto, copies, by_budget)
//   in_auto    whether `auto` and --sweep try it: kAlways, kWithCopies (only with --swap), kOnRequest
//   copies     it copies to the host whatever the options ask for
//   by_budget  it bounds the live bytes, so it runs again with less where its arena exceeds the budget
#define HOTPACK_REMAT_PLANNERS(X)                          \
  X(Search, "search", kAlways, false, true)                \
  X(Chen, "chen", kAlways, false, true)                    \
  X(Echo, "echo", kAlways, false, false)                   \
  X(Dtr, "dtr", kAlways, false, true)                      \
  X(Knapsack, "knapsack", kAlways, false, true)            \
  X(Dqn, "dqn", kOnRequest, true, true)                    \
  X(Memonger, "memonger", kAlways, false, true)            \
  X(SuperNeurons, "superneurons", kWithCopies, true, true) \
  X(Tflms, "tflms", kWithCopies, true, true)

// kAuto: the fastest of those that it tries.
enum class RematAlgorithm {
  kAuto,
#define HOTPACK_PLANNER(planner, name, in_auto, copies, by_budget) k##planner,
  HOTPACK_REMAT_PLANNERS(HOTPACK_PLANNER)
#undef HOTPACK_PLANNER
};

inline constexpr const char* kRematAlgorithmNames = "auto"
#define HOTPACK_PLANNER(planner, name, in_auto, copies, by_budget) ", " name
    HOTPACK_REMAT_PLANNERS(HOTPACK_PLANNER)
#undef HOTPACK_PLANNER
    ;

enum class InAuto { kAlways, kWithCopies, kOnRequest };

struct PlannerTraits {
  const char* name;
  RematAlgorithm algorithm;
  InAuto in_auto;
  bool copies;
  bool by_budget;
};

inline constexpr PlannerTraits kPlanners[] = {
#define HOTPACK_PLANNER(planner, name, in_auto, copies, by_budget) \
  {name, RematAlgorithm::k##planner, InAuto::in_auto, copies, by_budget},
    HOTPACK_REMAT_PLANNERS(HOTPACK_PLANNER)
#undef HOTPACK_PLANNER
};

}  // namespace hotpack::remat
