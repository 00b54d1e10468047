// Makes a context current while it lives, if it can.
#pragma once

#include "preload/process/driver_access.h"

namespace hotpack {

class CurrentScope {
 public:
  CurrentScope(const CudaDriver& driver, CUcontext context) : driver_(driver) {
    if (CurrentContext(driver) == context) return;
    pushed_ = driver.CtxPushCurrent(context) == CUDA_SUCCESS;
    current_ = pushed_;
  }
  ~CurrentScope() {
    if (pushed_) PopContext(driver_);
  }
  CurrentScope(const CurrentScope&) = delete;
  CurrentScope& operator=(const CurrentScope&) = delete;
  // Returns whether the context is current. If not, a default stream's handle means another context's stream.
  explicit operator bool() const { return current_; }

 private:
  const CudaDriver& driver_;
  bool pushed_ = false, current_ = true;
};

}  // namespace hotpack
