// The output of `hotpack doctor`.
#pragma once

#include "tools/doctor/doctor_advice.h"

namespace hotpack {

void PrintDiagnosis(const Diagnosis& diagnosis, const Advice& advice);
void PrintDiagnosisJson(const Diagnosis& diagnosis, const Advice& advice);

}  // namespace hotpack
