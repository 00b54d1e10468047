// The simulator in which the agent learns (sections 4.5 to 4.8 of the paper): what an action makes of time, memory and
// the node.
//
//   node       3        4        5          operations of 1 s; to offload x takes 1.5 s, from node 3 on
//   compute    │ read x │ malloc │          enough memory: the agent is asked again at node 5, at the end of the node in which
//   to host    │   offload x  │             the transfer ends; nothing has waited
//   compute    │ read x │ wait │ malloc     no memory for node 4: it waits for 0.5 s, and the agent is asked again at node 4
#pragma once

#include <cstdint>
#include <vector>

#include "remat/dqn/operations.h"

namespace hotpack::remat {

enum class Deed : uint8_t { kNothing, kOffload, kRemove };

struct AgentAction {
  Deed deed = Deed::kNothing;
  int32_t absence = -1;  // of Sequence::absences
  friend bool operator==(const AgentAction&, const AgentAction&) = default;
};

// Not thread-safe. `sequence` must outlive it.
class Environment {
 public:
  // `limit`: bytes. `skip`: a node is passed over, after doing nothing, where there is nothing to choose that could not
  // be chosen before.
  Environment(const Sequence& sequence, Bytes limit, bool skip = false);

  void Reset();

  // From the next Reset() on the limit is so many bytes lower.
  void Lower(Bytes bytes) { limit_ -= bytes; }

  // The node under execution, number of operations at the end; time and pauses until its beginning.
  int32_t node() const { return state_.node; }
  Nanoseconds time() const { return state_.time; }
  Nanoseconds paused() const { return state_.paused; }
  Bytes usage() const { return state_.usage; }

  // What may be done: nothing, unless the node under execution waits for memory that nothing frees; each variable that
  // is there, is not used before its absence ends, and is there at some later node above the limit may be offloaded
  // (H⁰) or removed (H¹), where a node stands for it. One that was offloaded is in neither of them any more, nor is one
  // that was removed.
  std::vector<AgentAction> Choices() const;

  // Does it and goes on to the next node at which the agent is asked. The reward in nanoseconds, ≤ 0 as a rule: what
  // the pauses and what is made again grow by until the end of the step, as far as is known from what is gone by now (a
  // variable that goes may also make room for an earlier transfer back of another, and so the reward positive). Losing
  // costs the step's time once more. O(nodes).
  Nanoseconds Step(AgentAction choice);

  // Nothing more has to go until the end: no later node is above the limit.
  bool Won() const;
  // A node is above the limit, and nothing can be done about it.
  bool Lost() const { return !Won() && Choices().empty(); }
  bool Terminal() const { return Won() || Lost(); }

  // The most bytes at one node from the present one on, if nothing more goes.
  Bytes peak() const;

  // Pauses and what is made again from the beginning to the end, if nothing more goes.
  Nanoseconds overhead() const { return overhead_; }
  const Sequence& sequence() const { return sequence_; }
  Nanoseconds duration() const { return duration_; }  // of the step without actions

 private:
  enum class Place : uint8_t { kThere, kGoing, kRemoved, kOnHost, kComing, kBack };
  struct State {
    int32_t node = 0;
    int32_t blocked = -1;  // until this node there is no room for the next transfer back
    Nanoseconds time = 0, paused = 0, again = 0;
    Nanoseconds to_device = 0;  // when the engine is free
    Bytes usage = 0;
    std::vector<Place> places;       // by absence
    std::vector<Nanoseconds> ready;  // by absence: when its transfer back ends
    std::vector<int32_t> holds;      // by memory: the variable whose contents it has; -1
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
  std::vector<std::vector<int32_t>> ends_, begins_;  // by node: absences whose `before`, or `after`, it is
  std::vector<std::vector<int32_t>> absences_of_;    // by variable
  std::vector<int32_t> by_return_;                   // absences by `before`
  State state_;
  std::vector<Bytes> load_;  // by node from the present one on: bytes there, if nothing comes back before it is needed
  std::vector<int32_t> next_over_;  // by node: the first from it on that is above the limit
  Nanoseconds overhead_ = 0;
};

}  // namespace hotpack::remat
