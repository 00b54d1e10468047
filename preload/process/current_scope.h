// Makes a context current while it lives.
#pragma once

#include "preload/process/driver_access.h"

namespace hotpack {

class CurrentScope {
 public:
  CurrentScope(const CudaDriver& driver, CUcontext context) : driver_(driver) {
    pushed_ = CurrentContext(driver) != context && driver.CtxPushCurrent(context) == CUDA_SUCCESS;
  }
  ~CurrentScope() {
    if (pushed_) PopContext(driver_);
  }
  CurrentScope(const CurrentScope&) = delete;
  CurrentScope& operator=(const CurrentScope&) = delete;

 private:
  const CudaDriver& driver_;
  bool pushed_ = false;
};

}  // namespace hotpack
