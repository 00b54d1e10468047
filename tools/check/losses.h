// Losses of a training program, one per line in hexadecimal, compared bit for bit.
#pragma once

#include <optional>
#include <string>

#include "tools/check/session.h"

namespace hotpack::check {

// Returns the contents of a file of losses; nothing if there is none.
std::optional<std::string> ReadLosses(const std::string& path);

// Compares two runs without hotpack. If they agree, their losses are the reference for the other runs. Adds the finding
// `losses` to `step`, the second of them; skipped if they differ or computed nothing. Returns the losses if they agree.
std::optional<std::string> AgreeOnLosses(const std::optional<std::string>& first,
                                         const std::optional<std::string>& second, bool simulated, Step* step);

// Adds the finding `losses` of a run with hotpack. Adds none if the step has failed already, or without a reference.
void CheckLosses(const std::optional<std::string>& reference, const std::optional<std::string>& losses, Step* step);

}  // namespace hotpack::check
