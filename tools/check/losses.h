// Losses that a training program wrote, one a line, in hexadecimal: compared bit for bit.
#pragma once

#include <optional>
#include <string>

#include "tools/check/session.h"

namespace hotpack::check {

// What stands in a file of losses; nothing if there is none.
std::optional<std::string> ReadLosses(const std::string& path);

// Two runs without hotpack: what they agree on can be asked of the others. Adds the finding `losses` to `step`, the
// second of them; skipped where they differ, or nothing was computed. Returns the losses if they agree.
std::optional<std::string> AgreeOnLosses(const std::optional<std::string>& first,
                                         const std::optional<std::string>& second, bool simulated, Step* step);

// The finding `losses` of a run with hotpack. None if the step has failed already, or without a reference.
void CheckLosses(const std::optional<std::string>& reference, const std::optional<std::string>& losses, Step* step);

}  // namespace hotpack::check
