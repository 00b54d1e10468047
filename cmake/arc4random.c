/* The C++ library that is linked into programs and libraries asks for this function of glibc 2.36 although nothing here
 * uses it (it stands behind std::random_device). Defined here, they start on machines with glibc 2.35 too. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t value;
  if (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value)
    abort(); /* four bytes are never cut or interrupted */
  return value;
}
