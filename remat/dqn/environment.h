// The simulator in which the agent learns (sections 4.5 to 4.8 of the paper): the effect of an action on time, memory
// and the current node.
//
//   node       3        4        5            operations of 1 s; offloading x takes 1.5 s, from node 3 on
//
//   compute    │ read x │ malloc │            enough memory: nothing waits. The agent acts again at node 5, the end
//   to host    │   offload x  │               of the node in which the transfer ends
//
//   compute    │ read x │ wait │ malloc       no memory for node 4: it waits 0.5 s. The agent acts again at node 4
#pragma once

#include <cstdint>
#include <vector>

#include "remat/dqn/operations.h"

namespace hotpack::remat {

enum class Deed : uint8_t { kNothing, kOffload, kRemove };

struct AgentAction {
  Deed deed = Deed::kNothing;
  int32_t absence = -1;  // index in Sequence::absences; -1: none
  friend bool operator==(const AgentAction&, const AgentAction&) = default;
};

// One episode. Not thread-safe. `sequence` must outlive it.
class Environment {
 public:
  // `limit`: bytes. `skip`: after doing nothing, nodes that offer no new choice are skipped.
  Environment(const Sequence& sequence, Bytes limit, bool skip = false);

  void Reset();

  // Lowers the limit by `bytes`, from the next Reset() on.
  void Lower(Bytes bytes) { limit_ -= bytes; }

  // The current node (the number of operations at the end); the time and the pauses until its beginning, in
  // nanoseconds.
  int32_t node() const { return state_.node; }
  Nanoseconds time() const { return state_.time; }
  Nanoseconds paused() const { return state_.paused; }
  Bytes usage() const { return state_.usage; }

  // Returns the possible actions:
  //  1. Doing nothing, unless the current node waits for memory that nothing frees.
  //  2. Offloading (H⁰) or removing (H¹) a variable, if a node stands for that action. The variable must be resident,
  //     not used before its absence ends, and resident at some later node above the limit.
  // A variable that was offloaded or removed can be neither offloaded nor removed.
  std::vector<AgentAction> Choices() const;

  // Performs the action and advances to the next node at which the agent acts. O(nodes). Returns the reward in
  // nanoseconds: minus the growth of pauses and recomputation until the end of the step, as predicted from the
  // variables absent by now. Losing costs the step's time once more. The reward is usually ≤ 0. It is positive if an
  // absent variable makes room for an earlier transfer back of another one.
  Nanoseconds Step(AgentAction choice);

  // Whether no later node is above the limit, so that no further action is necessary.
  bool Won() const;
  // Whether a node is above the limit and no action is possible.
  bool Lost() const { return !Won() && Choices().empty(); }
  bool Terminal() const { return Won() || Lost(); }

  // Returns the most bytes at one node from the current one on, if there are no further actions.
  Bytes peak() const;

  // Returns the pauses and recomputation of the whole step in nanoseconds, if there are no further actions.
  Nanoseconds overhead() const { return overhead_; }
  const Sequence& sequence() const { return sequence_; }
  Nanoseconds duration() const { return duration_; }  // of the step without actions

 private:
  enum class Place : uint8_t { kThere, kGoing, kRemoved, kOnHost, kComing, kBack };
  struct State {
    int32_t node = 0;
    int32_t blocked = -1;  // the next transfer back does not fit before this node's end
    Nanoseconds time = 0, paused = 0, again = 0;
    Nanoseconds to_device = 0;  // when the engine is free
    Bytes usage = 0;
    std::vector<Place> places;       // by absence
    std::vector<Nanoseconds> ready;  // by absence: when its transfer back ends
    std::vector<int32_t> holds;      // by memory: the variable whose contents it has; -1: none
    std::vector<bool> allocated;     // by memory
  };
  struct Pending {
    int32_t absence = -1;
    Nanoseconds end = 0;
  };

  const Absence& Of(int32_t absence) const { return sequence_.absences[static_cast<size_t>(absence)]; }
  int32_t MemoryOf(int32_t variable) const { return sequence_.variables[static_cast<size_t>(variable)].memory; }
  Bytes BytesOf(int32_t variable) const { return sequence_.memories[static_cast<size_t>(MemoryOf(variable))].bytes; }
  void Release(State* state, int32_t memory) const;
  void Hold(State* state, int32_t variable) const;
  void Touch(State* state, Bytes* peak) const;
  void BringBack(State* state, Bytes* peak) const;
  void MakeAgain(State* state, int32_t variable, Bytes* peak) const;
  void Collect(const State& state, int32_t variable, std::vector<int32_t>* makers) const;
  Bytes Execute(State* state) const;
  void FetchEarly(State* state, std::vector<Bytes>* load) const;
  void Advance(Pending* pending);
  bool Go(Pending* pending);
  void Complete(Pending* pending);
  State Gone() const;
  void LookAhead();
  bool Covers(const Absence& absence) const;

  const Sequence& sequence_;
  Bytes limit_;
  const bool skip_;
  Nanoseconds duration_ = 0;
  // By node: the absences whose `before` (ends_) or `after` (begins_) it is.
  std::vector<std::vector<int32_t>> ends_, begins_;
  std::vector<std::vector<int32_t>> absences_of_;  // by variable
  std::vector<int32_t> by_return_;                 // absences, ascending by `before`
  State state_;
  // By node from the current one on: resident bytes, if each variable comes back only when it is needed.
  std::vector<Bytes> load_;
  std::vector<int32_t> next_over_;  // by node: the first node from it on that is above the limit
  Nanoseconds overhead_ = 0;
};

}  // namespace hotpack::remat
