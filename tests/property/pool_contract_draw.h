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
  kReplaceStream,  // role's stream is destroyed and replaced
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
  // Place in the repeated step; inserted operations have their own.
  uint16_t origin = 0;
  uint16_t iteration = 0;
  uint32_t bytes = 0;
  uint32_t hint = 0;  // for all other draws
};

// The use of a stream, one each.
struct Role {
  bool legacy = false, non_blocking = false;
  bool named = true;  // false: the allocator never gets it
  int device = 0;
  int thread = 0;
};

struct Settings {
  std::vector<Role> roles;
  int slots = 0, iterations = 0, threads = 1, devices = 1;
  bool apart = false;  // no device can access another one's memory: only copies use it there
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

// A family of programs, and how to run them.
struct ContractShape {
  const char* name;
  int weight = 1;  // its share of the played programs
  // Permille of the uses on other streams of which the allocator is told; -1: drawn for each program.
  int told = -1;
  bool announced = false, raw = false;  // captures
  int threads = 1;                      // threads that take turns
  int together = 1;                     // programs at the same time, one thread each
  int devices = 1;
  bool apart = false;       // as Settings::apart; the environment says so to the simulated device
  bool saved_plan = false;  // a second process begins with the plan of the first
  bool recorded = false;    // into a trace
  // Streams on which blocks were requested or recorded end with the last of these blocks.
  bool replaces_named = false;
  bool starves = false;  // requests may fail
  int bytes_log2 = 23;
  std::vector<std::pair<const char*, const char*>> environment = {};
};

const std::vector<ContractShape>& ContractShapes();
const ContractShape* FindContractShape(const std::string& name);

// `changes`: seed of the differences between iterations; the step itself is drawn from `seed` alone. `part`: the
// program's number among programs that run together.
Drawn DrawProgram(const ContractShape& shape, uint64_t seed, uint64_t changes, int part);

std::string Text(const Op& op);

}  // namespace property
