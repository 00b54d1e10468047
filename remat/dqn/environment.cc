#include "remat/dqn/environment.h"

#include <algorithm>
#include <numeric>

namespace hotpack::remat {

Environment::Environment(const Sequence& sequence, Bytes limit, bool skip)
    : sequence_(sequence),
      limit_(limit),
      skip_(skip),
      ends_(sequence.operations.size()),
      begins_(sequence.operations.size()),
      absences_of_(sequence.variables.size()),
      by_return_(sequence.absences.size()) {
  for (const Operation& operation : sequence.operations) duration_ += operation.duration;
  for (size_t a = 0; a < sequence.absences.size(); ++a) {
    const Absence& absence = sequence.absences[a];
    ends_[static_cast<size_t>(absence.before)].push_back(static_cast<int32_t>(a));
    begins_[static_cast<size_t>(absence.after)].push_back(static_cast<int32_t>(a));
    absences_of_[static_cast<size_t>(absence.variable)].push_back(static_cast<int32_t>(a));
  }
  std::iota(by_return_.begin(), by_return_.end(), 0);
  std::stable_sort(by_return_.begin(), by_return_.end(),
                   [this](int32_t a, int32_t b) { return Of(a).before < Of(b).before; });
  Reset();
}

void Environment::Reset() {
  state_ = {};
  state_.usage = sequence_.always;
  state_.places.assign(sequence_.absences.size(), Place::kThere);
  state_.ready.assign(sequence_.absences.size(), 0);
  state_.holds.assign(sequence_.memories.size(), -1);
  state_.allocated.assign(sequence_.memories.size(), false);
  for (int32_t variable : sequence_.given) Hold(&state_, variable);
  LookAhead();
}

void Environment::Hold(State* state, int32_t variable) const {
  const auto memory = static_cast<size_t>(MemoryOf(variable));
  if (!state->allocated[memory]) state->usage += sequence_.memories[memory].bytes;
  state->allocated[memory] = true;
  state->holds[memory] = variable;
}

void Environment::Release(State* state, int32_t memory) const {
  const auto index = static_cast<size_t>(memory);
  if (state->allocated[index]) state->usage -= sequence_.memories[index].bytes;
  state->allocated[index] = false;
  state->holds[index] = -1;
}

// Collects the makers that must run so that the variable is resident, in their order. A variable on the host needs no
// maker, because its own transfer brings it back.
void Environment::Collect(const State& state, int32_t variable, std::vector<int32_t>* makers) const {
  if (state.holds[static_cast<size_t>(MemoryOf(variable))] == variable) return;
  for (int32_t absence : absences_of_[static_cast<size_t>(variable)]) {
    if (state.places[static_cast<size_t>(absence)] == Place::kOnHost) return;
  }
  const int32_t maker = sequence_.variables[static_cast<size_t>(variable)].maker;
  if (maker < 0 || std::find(makers->begin(), makers->end(), maker) != makers->end()) return;
  makers->push_back(maker);
  for (int32_t needed : sequence_.makers[static_cast<size_t>(maker)].needs) Collect(state, needed, makers);
}

// Runs the makers again. Variables used later stay, the others are dropped after their last use.
void Environment::MakeAgain(State* state, int32_t variable, Bytes* peak) const {
  std::vector<int32_t> makers;
  Collect(*state, variable, &makers);
  std::sort(makers.begin(), makers.end());
  std::vector<int32_t> temporary;
  for (size_t i = 0; i < makers.size(); ++i) {
    const Maker& maker = sequence_.makers[static_cast<size_t>(makers[i])];
    for (int32_t made : maker.makes) {
      const auto memory = static_cast<size_t>(MemoryOf(made));
      if (state->holds[memory] == made) continue;
      const bool other = state->allocated[memory] && state->holds[memory] >= 0;
      if (other && std::find(maker.needs.begin(), maker.needs.end(), state->holds[memory]) == maker.needs.end())
        continue;
      Hold(state, made);
      bool stays = made == variable;
      for (int32_t absence : absences_of_[static_cast<size_t>(made)]) {
        Place& place = state->places[static_cast<size_t>(absence)];
        if (place != Place::kRemoved || Of(absence).before < state->node) continue;
        place = Place::kBack;
        stays = true;
      }
      if (!stays) temporary.push_back(made);
    }
    *peak = std::max(*peak, state->usage);
    state->time += maker.cost;
    state->again += maker.cost;
    std::erase_if(temporary, [&](int32_t made) {
      for (size_t later = i + 1; later < makers.size(); ++later) {
        const std::vector<int32_t>& needs = sequence_.makers[static_cast<size_t>(makers[later])].needs;
        if (std::find(needs.begin(), needs.end(), made) != needs.end()) return false;
      }
      if (state->holds[static_cast<size_t>(MemoryOf(made))] == made) Release(state, MemoryOf(made));
      return true;
    });
  }
}

// Restores the variables that the present node needs: waits for transfers, and recomputes removed variables.
void Environment::BringBack(State* state, Bytes* peak) const {
  for (int32_t a : ends_[static_cast<size_t>(state->node)]) {
    Place& place = state->places[static_cast<size_t>(a)];
    const Absence& absence = Of(a);
    if (place == Place::kOnHost) {
      Hold(state, absence.variable);
      state->ready[static_cast<size_t>(a)] = state->to_device =
          std::max(state->time, state->to_device) +
          sequence_.memories[static_cast<size_t>(MemoryOf(absence.variable))].to_device;
      place = Place::kComing;
    }
    if (place == Place::kComing) {
      const Nanoseconds wait = std::max<Nanoseconds>(0, state->ready[static_cast<size_t>(a)] - state->time);
      state->time += wait;
      state->paused += wait;
      place = Place::kBack;
    }
    if (place == Place::kRemoved) {
      MakeAgain(state, absence.variable, peak);
      place = Place::kBack;
    }
    *peak = std::max(*peak, state->usage);
  }
}

void Environment::Touch(State* state, Bytes* peak) const {
  const Operation& operation = sequence_.operations[static_cast<size_t>(state->node)];
  if (operation.kind == OperationKind::kMalloc) {
    const auto memory = static_cast<size_t>(MemoryOf(operation.variable));
    if (!state->allocated[memory]) state->usage += sequence_.memories[memory].bytes;
    state->allocated[memory] = true;
  } else if (operation.kind == OperationKind::kWrite) {
    Hold(state, operation.variable);
  }
  *peak = std::max(*peak, state->usage);
}

// Runs the present node and advances to the next one. Returns the peak in bytes.
Bytes Environment::Execute(State* state) const {
  Bytes peak = state->usage;
  BringBack(state, &peak);
  Touch(state, &peak);
  const Operation& operation = sequence_.operations[static_cast<size_t>(state->node)];
  state->time += operation.duration;
  if (operation.kind == OperationKind::kFree) Release(state, MemoryOf(operation.variable));
  for (int32_t a : begins_[static_cast<size_t>(state->node)]) {
    const Place place = state->places[static_cast<size_t>(a)];
    const int32_t variable = Of(a).variable;
    const bool goes = place == Place::kRemoved || place == Place::kOnHost;
    if (goes && state->holds[static_cast<size_t>(MemoryOf(variable))] == variable) Release(state, MemoryOf(variable));
  }
  ++state->node;
  return peak;
}

// Section 4.5: variables come back in the order of their next uses, each as soon as no node until its use would exceed
// the limit.
void Environment::FetchEarly(State* state, std::vector<Bytes>* load) const {
  const Nanoseconds until = state->time + sequence_.operations[static_cast<size_t>(state->node)].duration;
  for (int32_t a : by_return_) {
    if (state->places[static_cast<size_t>(a)] != Place::kOnHost || Of(a).before <= state->node) continue;
    if (Of(a).after >= state->node || state->to_device > until) return;
    const Bytes bytes = BytesOf(Of(a).variable);
    if (state->node <= state->blocked) return;
    for (int32_t at = Of(a).before; at-- > state->node;) {
      if ((*load)[static_cast<size_t>(at)] + bytes <= limit_) continue;
      state->blocked = at;
      return;
    }
    for (int32_t at = state->node; at < Of(a).before; ++at) (*load)[static_cast<size_t>(at)] += bytes;
    Hold(state, Of(a).variable);
    state->to_device = std::max(state->time, state->to_device) +
                       sequence_.memories[static_cast<size_t>(MemoryOf(Of(a).variable))].to_device;
    state->ready[static_cast<size_t>(a)] = state->to_device;
    state->places[static_cast<size_t>(a)] = Place::kComing;
  }
}

// Returns the present state as if pending offloads had ended.
Environment::State Environment::Gone() const {
  State state = state_;
  state.blocked = -1;
  for (size_t a = 0; a < state.places.size(); ++a) {
    if (state.places[a] != Place::kGoing) continue;
    state.places[a] = Place::kOnHost;
    if (state.node > sequence_.absences[a].after) Release(&state, MemoryOf(sequence_.absences[a].variable));
  }
  return state;
}

// Predicts the rest of the step, given the variables that are absent by now.
void Environment::LookAhead() {
  state_.blocked = -1;
  const size_t nodes = sequence_.operations.size();
  load_.assign(nodes, 0);
  State state = Gone();
  while (static_cast<size_t>(state.node) < nodes) {
    const auto node = static_cast<size_t>(state.node);
    load_[node] = Execute(&state);
  }
  next_over_.assign(nodes + 1, static_cast<int32_t>(nodes));
  for (size_t i = nodes; i-- > static_cast<size_t>(state_.node);)
    next_over_[i] = load_[i] > limit_ ? static_cast<int32_t>(i) : next_over_[i + 1];
  state = Gone();
  std::vector<Bytes> load = load_;
  while (static_cast<size_t>(state.node) < nodes) {
    FetchEarly(&state, &load);
    Execute(&state);
  }
  overhead_ = state.paused + state.again;
}

bool Environment::Covers(const Absence& absence) const {
  return next_over_[static_cast<size_t>(std::max(state_.node, absence.after + 1))] < absence.before;
}

std::vector<AgentAction> Environment::Choices() const {
  std::vector<AgentAction> choices;
  const bool stuck = state_.node >= static_cast<int32_t>(sequence_.operations.size()) ||
                     load_[static_cast<size_t>(state_.node)] > limit_;
  if (!stuck) choices.push_back({});
  for (size_t a = 0; a < sequence_.absences.size(); ++a) {
    const Absence& absence = sequence_.absences[a];
    if (absence.open > state_.node) break;
    if (state_.places[a] != Place::kThere || absence.before <= state_.node || !Covers(absence)) continue;
    if (absence.offload_node >= 0) choices.push_back({Deed::kOffload, static_cast<int32_t>(a)});
    if (absence.remove_node >= 0) choices.push_back({Deed::kRemove, static_cast<int32_t>(a)});
  }
  return choices;
}

Bytes Environment::peak() const {
  return state_.node < static_cast<int32_t>(load_.size()) ? *std::max_element(load_.begin() + state_.node, load_.end())
                                                          : 0;
}

bool Environment::Won() const {
  return next_over_[static_cast<size_t>(state_.node)] == static_cast<int32_t>(sequence_.operations.size());
}

void Environment::Complete(Pending* pending) {
  const Absence& absence = Of(pending->absence);
  Place& place = state_.places[static_cast<size_t>(pending->absence)];
  if (absence.before <= state_.node) {
    place = Place::kBack;  // it was used before the transfer ended
  } else {
    place = Place::kOnHost;
    if (state_.node > absence.after) Release(&state_, MemoryOf(absence.variable));
  }
  *pending = {};
}

// Advances by one node, or pauses. Returns false if the agent acts now.
bool Environment::Go(Pending* pending) {
  const bool waits = pending->absence >= 0;
  if (static_cast<size_t>(state_.node) == sequence_.operations.size()) return false;
  const Bytes not_yet = waits && Of(pending->absence).after < state_.node ? BytesOf(Of(pending->absence).variable) : 0;
  if (load_[static_cast<size_t>(state_.node)] + not_yet > limit_) {
    if (waits) {
      const Nanoseconds pause = std::max<Nanoseconds>(0, pending->end - state_.time);
      state_.time += pause;
      state_.paused += pause;
      Complete(pending);
    }
    return false;
  }
  FetchEarly(&state_, &load_);
  Execute(&state_);
  if (!waits) return false;
  if (pending->end > state_.time && state_.node < Of(pending->absence).before) return true;
  Complete(pending);
  return false;
}

void Environment::Advance(Pending* pending) {
  while (Go(pending)) {
  }
}

Nanoseconds Environment::Step(AgentAction choice) {
  const Nanoseconds before = overhead_;
  Pending pending;
  if (choice.deed != Deed::kNothing) {
    const Absence& absence = Of(choice.absence);
    Place& place = state_.places[static_cast<size_t>(choice.absence)];
    if (choice.deed == Deed::kRemove) {
      place = Place::kRemoved;
      if (state_.node > absence.after) Release(&state_, MemoryOf(absence.variable));
    } else {
      place = Place::kGoing;
      pending = {choice.absence,
                 state_.time + sequence_.memories[static_cast<size_t>(MemoryOf(absence.variable))].to_host};
    }
  }
  LookAhead();
  const size_t asked = skip_ && choice.deed == Deed::kNothing ? Choices().size() : 0;
  const int32_t from = state_.node;
  Advance(&pending);
  LookAhead();
  while (skip_ && choice.deed == Deed::kNothing && state_.node > from && !Terminal() && Choices().size() == asked &&
         load_[static_cast<size_t>(state_.node)] <= limit_) {
    Advance(&pending);
  }
  LookAhead();
  return before - overhead_ - (Lost() ? duration_ : 0);
}

}  // namespace hotpack::remat
