// Draws programs as lists of operations. The list does not contain the waits that make an operation correct. The player
// adds them, so that a list stays correct when operations are removed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/property/random.h"

namespace property {

enum class Do : uint8_t {
  kRequest,        // slot, role, bytes
  kRelease,        // slot
  kUse,            // slot, role
  kTell,           // slot, role: record_stream
  kWait,           // role waits for other
  kSyncStream,     // role: the host waits
  kSyncDevice,     // role's device
  kReplaceStream,  // role's stream is destroyed, and there is a new one
  kBeginCapture,   // role
  kEndCapture,
  kLaunch,     // role: the latest graph
  kDropGraph,  // the latest
  kEmptyCache,
  kMark,  // an iteration ends
};

struct Op {
  Do what;
  uint8_t role = 0, other = 0;
  uint16_t slot = 0;
  uint16_t origin = 0;  // place in the step that is repeated; those inserted have one of their own
  uint16_t iteration = 0;
  uint32_t bytes = 0;
  uint32_t hint = 0;  // for all else that is drawn
};

// What streams do: one each.
struct Role {
  bool legacy = false, non_blocking = false;
  bool named = true;  // else the allocator never hears of it
  int device = 0;
  int thread = 0;
};

struct Settings {
  std::vector<Role> roles;
  int slots = 0, iterations = 0, threads = 1, devices = 1;
  // Permille: how often the owner waits for all uses at the release, which the contract does not require.
  int waits_at_release = 0;
  bool implicit = false;  // relies on the legacy stream's own order
  bool marks = false, waits_for_plan = true, announced = false, raw = false, tells = false;
  bool replaces_named = false;
  bool calm = false;  // nothing that would disturb another program's capture
};

struct Drawn {
  Settings settings;
  std::vector<Op> ops;
};

// A family of programs, and how they are run.
struct ContractShape {
  const char* name;
  int weight = 1;  // its share of the programs that are played
  int told = -1;   // permille of the uses on other streams that the allocator is told of; -1: drawn for each program
  bool announced = false, raw = false;  // captures
  int threads = 1;                      // that take turns
  int together = 1;                     // programs at a time, a thread each
  int devices = 1;
  bool saved_plan = false;  // a second process begins with the plan of the first
  bool replaces_named =
      false;             // streams that blocks were asked for on, or recorded on, end with the last of these blocks
  bool starves = false;  // requests may fail
  int bytes_log2 = 23;
  std::vector<std::pair<const char*, const char*>> environment = {};
};

const std::vector<ContractShape>& ContractShapes();
const ContractShape* FindContractShape(const std::string& name);

// `changes`: seed of what differs between iterations; the step itself is drawn from `seed` alone. `part`: of programs
// that run together, whose number it is.
Drawn DrawProgram(const ContractShape& shape, uint64_t seed, uint64_t changes, int part);

std::string Text(const Op& op);

}  // namespace property
