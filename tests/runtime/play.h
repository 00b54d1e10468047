// Requirements of whole-program tests for a job.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "tests/runtime/job.h"

namespace hotpack {

// Plays until an iteration is fully planned; fails if that takes more than `limit`.
inline void PlayUntilPlanned(Job* job, const std::function<void()>& iteration, int limit = 8) {
  for (int i = 0; i < limit; ++i) {
    if (job->Play(iteration).Full()) return;
  }
  ADD_FAILURE() << "not planned: " << job->History();
}

// From here on each iteration is fully planned.
inline void ExpectPlanned(Job* job, const std::function<void()>& iteration, int times) {
  for (int i = 0; i < times; ++i) {
    if (!job->Play(iteration).Full()) {
      ADD_FAILURE() << "iteration " << i << ": " << job->History();
      return;
    }
  }
}

}  // namespace hotpack
